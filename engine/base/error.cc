#include "engine/base/error.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace encoderd {
namespace {

// The payload is lines of "key\tvalue", the first two keyed "reason" and
// "field"; a violation is "\tfield\tdescription". Values are numbers and names
// made by this project; a tab or a line break in one is replaced by a space.
constexpr char kPayloadUrl[] = "encoderd/ErrorDetail";

std::string Clean(absl::string_view value) {
  std::string clean(value);
  for (char& c : clean) {
    if (c == '\t' || c == '\n') c = ' ';
  }
  return clean;
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, absl::string_view message,
                       const ErrorDetail& detail) {
  absl::Status status(code, message);
  std::string payload = absl::StrCat("reason\t", Clean(detail.reason),
                                     "\nfield\t", Clean(detail.field));
  for (const auto& [key, value] : detail.metadata) {
    absl::StrAppend(&payload, "\n", Clean(key), "\t", Clean(value));
  }
  for (const Violation& violation : detail.violations) {
    absl::StrAppend(&payload, "\n\t", Clean(violation.field), "\t",
                    Clean(violation.description));
  }
  status.SetPayload(kPayloadUrl, absl::Cord(payload));
  return status;
}

std::optional<ErrorDetail> GetErrorDetail(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return std::nullopt;
  ErrorDetail detail;
  const std::string text(*payload);
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<std::string, std::string> entry =
        absl::StrSplit(line, absl::MaxSplits('\t', 1));
    if (line_number == 0) {
      detail.reason = entry.second;
    } else if (line_number == 1) {
      detail.field = entry.second;
    } else if (entry.first.empty()) {
      std::pair<std::string, std::string> violation =
          absl::StrSplit(entry.second, absl::MaxSplits('\t', 1));
      detail.violations.push_back(
          {std::move(violation.first), std::move(violation.second)});
    } else {
      detail.metadata[entry.first] = entry.second;
    }
    ++line_number;
  }
  return detail;
}

}  // namespace encoderd
