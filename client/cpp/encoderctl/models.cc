// encoderctl models
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cpp/encoderctl/invocation.h"
#include "client/cpp/encoderctl/json_line.h"
#include "client/cpp/encoderctl/wrap.h"
#include "client/cpp/encoderctl/writer.h"

namespace encoderd::ctl {
namespace {

using Json = nlohmann::ordered_json;

// "POOLING_MEAN" -> "mean"
std::string Word(absl::string_view name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

Json TableJson(const v1::Table& table) {
  return Json{{"rows", table.rows()},
              {"columns", table.columns()},
              {"parameters", table.parameters()}};
}

Json ToJson(const v1::Model& model) {
  Json json;
  json["name"] = model.name();
  json["max_len"] = model.max_len();
  json["dimensions"] = model.dimensions();
  json["architecture"] = model.architecture();
  json["hidden_size"] = model.hidden_size();
  json["num_hidden_layers"] = model.num_hidden_layers();
  json["num_attention_heads"] = model.num_attention_heads();
  json["intermediate_size"] = model.intermediate_size();
  json["max_len_source"] =
      Word(v1::MaxLenSource_Name(model.max_len_source()), "MAX_LEN_SOURCE_");
  json["position_offset"] = model.position_offset();
  json["token_table"] = TableJson(model.token_table());
  json["position_table"] = TableJson(model.position_table());
  json["segment_table"] = TableJson(model.segment_table());
  json["total_parameters"] = model.total_parameters();
  json["embedding_parameters"] = model.embedding_parameters();
  json["layer_parameters"] = std::vector<uint64_t>(
      model.layer_parameters().begin(), model.layer_parameters().end());
  json["head_parameters"] = model.head_parameters();
  json["position_scheme"] = model.position_scheme();
  json["pooling"] = Word(v1::Pooling_Name(model.pooling()), "POOLING_");
  json["normalize"] = model.normalize();
  json["dtype"] = model.dtype();
  json["device"] = model.device();
  json["tokenizer"] = model.tokenizer();
  json["vocab_size"] = model.vocab_size();
  json["weights_sha256"] = model.weights_sha256();
  json["fingerprint"] = model.fingerprint();
  json["prompts"] = std::map<std::string, std::string>(model.prompts().begin(),
                                                       model.prompts().end());
  json["default_prompt_name"] = model.default_prompt_name();
  json["max_inputs_per_request"] = model.max_inputs_per_request();
  return json;
}

// A line a field; a table as "rows x columns = parameters".
std::string ToText(const Json& json) {
  std::string text;
  for (const auto& [key, value] : json.items()) {
    std::string shown = value.is_string() ? Printable(value.get<std::string>())
                                          : JsonLine(value);
    if (value.is_object() && value.contains("rows")) {
      shown = absl::StrCat(JsonLine(value["rows"]), " x ",
                           JsonLine(value["columns"]), " = ",
                           JsonLine(value["parameters"]), " parameters");
    }
    absl::StrAppend(&text, key,
                    std::string(24 - std::min<size_t>(23, key.size()), ' '),
                    shown, "\n");
  }
  return text;
}

absl::StatusOr<std::vector<v1::Model>> Fetch(const client::Client& client,
                                             const Arguments& names) {
  if (names.empty()) return client.Models();
  auto model = client.GetModel(names[0]);
  if (!model.ok()) return model.status();
  return std::vector<v1::Model>{*std::move(model)};
}

}  // namespace

int RunModels(const Command& command, const Arguments& arguments,
              Environment& environment) {
  Invocation invocation(command, environment);
  invocation.AddOutputFlags({OutputFormat::kText, OutputFormat::kJsonl});
  if (const auto over = invocation.Parse(arguments)) return *over;
  if (invocation.positional.size() > 1) {
    return invocation.Usage("takes one name at most");
  }
  const auto client = invocation.Connect();
  if (!client.ok()) return invocation.Refuse(client.status());
  const auto models = Fetch(**client, invocation.positional);
  if (!models.ok()) return invocation.Fail(models.status());
  auto writer = Writer::Open(invocation.settings.output, false, environment);
  if (!writer.ok()) return invocation.Refuse(writer.status());
  std::string text;
  for (const v1::Model& model : *models) {
    if (invocation.settings.format == OutputFormat::kJsonl) {
      absl::StrAppend(&text, JsonLine(ToJson(model)), "\n");
    } else {
      absl::StrAppend(&text, text.empty() ? "" : "\n", ToText(ToJson(model)));
    }
  }
  absl::Status status = (*writer)->Write(text);
  status.Update((*writer)->Finish());
  return status.ok() ? kExitOk : invocation.Fail(status);
}

}  // namespace encoderd::ctl
