// What the readers of tokenizer.json's parts share.
#include "absl/strings/str_cat.h"
#include "engine/io/file.h"
#include "engine/tokenizer/files/json_parts.h"

namespace encoderd::json_parts {

absl::Status Bad(absl::string_view where, absl::string_view wanted) {
  return absl::DataLossError(
      absl::StrCat(kFile, ": ", where, " must be ", wanted));
}

absl::Status Unsupported(absl::string_view part, absl::string_view found,
                         absl::string_view supported) {
  return absl::UnimplementedError(
      absl::StrCat(kFile, ": ", part, " ", Quote(found),
                   " is not supported; supported: ", supported));
}

absl::StatusOr<std::string> TypeOf(const Json& component,
                                   absl::string_view part) {
  if (!component.is_object()) return Bad(part, "an object");
  return JsonFields(component, absl::StrCat(kFile, ": ", part)).String("type");
}

absl::StatusOr<std::vector<const Json*>> ReadSequence(const Json& json,
                                                      const char* key,
                                                      absl::string_view part) {
  const auto list = json.find(key);
  const std::string where = absl::StrCat(part, ".", key);
  if (list == json.end() || !list->is_array()) return Bad(where, "an array");
  if (list->size() > kMaxSteps) {
    return Bad(where, absl::StrCat("an array of at most ", kMaxSteps));
  }
  std::vector<const Json*> steps;
  for (const Json& step : *list) steps.push_back(&step);
  return steps;
}

}  // namespace encoderd::json_parts
