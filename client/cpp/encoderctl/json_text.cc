#include "client/cpp/encoderctl/json_text.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/cpp/utf8.h"

namespace encoderd::ctl {
namespace {

constexpr size_t kMostKeys = 8;  // that an error names

// Why `line` cannot be parsed.
std::string Explain(const std::string& line,
                    const nlohmann::json::parse_error& error) {
  const size_t valid = client::ValidUtf8Prefix(line);
  if (valid < line.size()) {
    return absl::StrCat("is not valid UTF-8 at byte ", valid);
  }
  // What follows is the caller's own text.
  absl::string_view words = error.what();
  words = words.substr(0, words.find("; last read"));
  if (absl::StrContains(words, "surrogate")) {
    return absl::StrCat(
        "has half a character, such as \\ud83d alone, up to byte ", error.byte,
        ": a character past \\uffff takes two, such as \\ud83d\\ude00");
  }
  return absl::StrCat("is invalid JSON at byte ", error.byte);
}

}  // namespace

absl::StatusOr<std::string> JsonText(const std::string& line,
                                     const std::string& field) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    return absl::InvalidArgumentError(Explain(line, error));
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError("has a number that no double can hold");
  }
  if (json.is_string()) return json.get<std::string>();
  if (json.is_object() && json.contains(field) && json[field].is_string()) {
    return json[field].get<std::string>();
  }
  const std::string wanted =
      absl::StrCat("is neither a JSON string nor an object with a string in \"",
                   field, "\"");
  if (!json.is_object() || json.contains(field)) {
    return absl::InvalidArgumentError(wanted);
  }
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) {
    if (value.is_string() && keys.size() < kMostKeys) keys.push_back(key);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      wanted, keys.empty() ? "" : "; strings are in: ",
      absl::StrJoin(keys, ", "), keys.empty() ? "" : " (--field)"));
}

}  // namespace encoderd::ctl
