#include "engine/checkpoint/architecture.h"

#include <cstdlib>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "architectures.h"

namespace encoderd {
namespace {

using Architectures = std::map<std::string, Architecture>;

// Ends the program: the table is part of it, and tests read every entry.
[[noreturn]] void Wrong(absl::string_view what) {
  std::cerr << "architectures.json: " << what << "\n";
  std::abort();
}

// The entry with what it takes over.
Json EntryOf(const Json& all, const std::string& model_type) {
  const Json& entry = all.at(model_type);
  if (!entry.contains("like")) return entry;
  Json whole = EntryOf(all, entry.at("like"));
  whole.merge_patch(entry);
  return whole;
}

// A name that begins with a dot follows the layer's.
std::string Below(const std::string& layer, const std::string& name) {
  return absl::StartsWith(name, ".") ? layer + name : name;
}

TensorRow RowOf(const Json& row, const std::string& layer) {
  TensorRow parsed;
  if (!ParseRole(row.at(0).get<std::string>(), &parsed.role))
    Wrong(absl::StrCat("no role ", row.at(0).dump()));
  parsed.name = Below(layer, row.at(1));
  parsed.in_layer = parsed.name != row.at(1);
  parsed.shape = row.at(2);
  for (size_t i = 3; i < row.size(); ++i) {
    const std::string flag = row.at(i);
    if (flag == "bias") {
      parsed.bias = true;
    } else if (flag == "transposed") {
      parsed.transposed = true;
    } else if (flag == "not first") {
      parsed.not_first = true;
    } else {
      parsed.bias_key = flag;
    }
  }
  return parsed;
}

Architecture Parsed(const std::string& model_type, const Json& entry) {
  Architecture parsed;
  parsed.model_type = model_type;
  parsed.keys = entry.at("keys");
  parsed.defaults = entry.at("defaults");
  for (const Json& row : entry.at("tensors"))
    parsed.tensors.rows.push_back(RowOf(row, entry.at("layer")));
  for (const std::string name : entry.at("ignored"))
    parsed.tensors.ignored.push_back(Below(entry.at("layer"), name));
  const std::string padding = entry.value("padding_row", "");
  if (padding == "one") parsed.padding_row = PaddingRow::kOne;
  if (padding == "pad_token_id") parsed.padding_row = PaddingRow::kPadTokenId;
  if (entry.contains("positions"))
    parsed.position_scheme = PositionSchemeNamed(entry.at("positions"));
  parsed.positions_called = entry.value("positions_called", "");
  parsed.always_projects = entry.value("always_projects", false);
  parsed.only = entry.value("only", Json::object());
  const Json form = entry.value("form", Json::object());
  parsed.pre_norm = form.value("pre_norm", false);
  parsed.gated = form.value("gated", false);
  parsed.causal = form.value("causal", false);
  parsed.segments_of_tokens = form.value("segments_of_tokens", false);
  return parsed;
}

const Architectures& All() {
  static const Architectures* const all = [] {
    auto* parsed = new Architectures;
    const Json table = Json::parse(kArchitecturesJson);
    for (const auto& [model_type, entry] : table.items())
      (*parsed)[model_type] = Parsed(model_type, EntryOf(table, model_type));
    return parsed;
  }();
  return *all;
}

}  // namespace

const Architecture* FindArchitecture(absl::string_view model_type) {
  const auto found = All().find(std::string(model_type));
  return found == All().end() ? nullptr : &found->second;
}

std::string SupportedArchitectures() {
  std::string names;
  for (const auto& [name, architecture] : All())
    absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  return names;
}

}  // namespace encoderd
