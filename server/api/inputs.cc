#include "server/api/inputs.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/error.h"
#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

// An error about an id, with the id as it was sent.
absl::Status AsSent(const absl::Status& status) {
  std::optional<ErrorDetail> detail = GetErrorDetail(status);
  int32_t id = 0;
  if (!detail.has_value() || !absl::SimpleAtoi(detail->metadata["id"], &id) ||
      id >= 0) {
    return status;
  }
  const std::string sent = absl::StrCat(static_cast<uint32_t>(id));
  detail->metadata["id"] = sent;
  return MakeError(status.code(),
                   absl::StrReplaceAll(status.message(),
                                       {{absl::StrCat(" id ", id, " "),
                                         absl::StrCat(" id ", sent, " ")}}),
                   *detail);
}

absl::Status CheckInput(const InputRules& rules, Input* input) {
  if (auto* text = std::get_if<TextInput>(input)) {
    if (text->text.empty()) {
      return EmptyInputError("the input is an empty text");
    }
    if (!rules.prompt.empty()) text->text.insert(0, rules.prompt);
  } else if (const auto* ids = std::get_if<TokenSequence>(input)) {
    return AsSent(ValidateSequence(*ids, rules.limits));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInputCount(int64_t count, const RequestLimits& limits) {
  if (count == 0) return NoInputsError();
  if (count <= limits.max_inputs) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("inputs has ", count,
                                " entries; one request may carry at most ",
                                limits.max_inputs, ": send fewer at once"),
                   {"TOO_MANY_INPUTS",
                    {{"count", absl::StrCat(count)},
                     {"limit", absl::StrCat(limits.max_inputs)}},
                    "inputs"});
}

absl::Status EmptyInputError(absl::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, message,
                   {"EMPTY_INPUT", {}, ""});
}

absl::Status CheckInputs(const InputRules& rules, std::vector<Input>* inputs) {
  std::vector<InputFault> faults;
  int64_t total = 0;
  for (size_t i = 0; i < inputs->size(); ++i) {
    Input& input = (*inputs)[i];
    InputFault fault{static_cast<int64_t>(i), {}};
    if (auto* refused = std::get_if<RefusedInput>(&input)) {
      fault.status = std::move(refused->error);
    } else {
      const absl::Status status = CheckInput(rules, &input);
      if (status.ok()) continue;
      fault = MakeInputFault(fault.index, ContentName(input), status);
    }
    if (rules.errors_per_input) {
      const auto* ids = std::get_if<TokenSequence>(&input);
      const int64_t tokens = ids == nullptr ? 0 : ids->size();
      input = RefusedInput{WithAdvice(fault.status), tokens};
    } else if (++total <= kMaxViolations) {
      faults.push_back(std::move(fault));
    }
  }
  if (total == 0) return absl::OkStatus();
  return CombineInputFaults(std::move(faults), total);
}

}  // namespace encoderd
