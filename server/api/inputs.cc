#include "server/api/inputs.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/error.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/reasons.h"

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

// What is wrong with `input`, without its index. Cheap: a request may have a
// million inputs at fault.
absl::Status CheckInput(const InputRules& rules, Input* input) {
  static const absl::Status kEmpty =
      EmptyInputError("the input is an empty text");
  if (auto* text = std::get_if<TextInput>(input)) {
    if (text->text.empty()) return kEmpty;
    if (!rules.prompt.empty()) text->text.insert(0, rules.prompt);
  } else if (const auto* ids = std::get_if<TokenSequence>(input)) {
    return ValidateSequence(*ids, rules.limits);
  } else if (const auto* refused = std::get_if<RefusedInput>(input)) {
    return refused->error;
  }
  return absl::OkStatus();
}

// `error` of CheckInput, complete.
InputFault ToFault(int64_t index, const Input& input,
                   const absl::Status& error) {
  if (const auto* refused = std::get_if<RefusedInput>(&input)) {
    if (refused->complete) return {index, error};
    return MakeInputFault(index, "", error);
  }
  return MakeInputFault(
      index, ContentName(input),
      std::holds_alternative<TokenSequence>(input) ? AsSent(error) : error);
}

}  // namespace

absl::Status CheckInputCount(int64_t count, const RequestLimits& limits) {
  if (count == 0) return NoInputsError();
  if (count <= limits.max_inputs) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("inputs has ", count,
                                " entries; one request may carry at most ",
                                limits.max_inputs, ": send fewer at once"),
                   {reason::kTooManyInputs,
                    {{"count", absl::StrCat(count)},
                     {"limit", absl::StrCat(limits.max_inputs)}},
                    "inputs"});
}

absl::Status EmptyInputError(absl::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, message,
                   {reason::kEmptyInput, {}, ""});
}

absl::Status CheckInputs(const InputRules& rules, std::vector<Input>* inputs) {
  std::vector<InputFault> faults;
  int64_t total = 0;
  for (size_t i = 0; i < inputs->size(); ++i) {
    Input& input = (*inputs)[i];
    const absl::Status error = CheckInput(rules, &input);
    if (error.ok()) continue;
    ++total;
    const auto index = static_cast<int64_t>(i);
    if (!rules.errors_per_input) {
      if (total <= kMaxViolations) {
        faults.push_back(ToFault(index, input, error));
      }
      continue;
    }
    if (total * kLeastErrorBytes > rules.max_answer_bytes) {
      return AnswerTooLargeError(total * kLeastErrorBytes,
                                 rules.max_answer_bytes, "inputs");
    }
    const auto* ids = std::get_if<TokenSequence>(&input);
    const int64_t tokens = ids == nullptr ? 0 : ids->size();
    input =
        RefusedInput{WithAdvice(ToFault(index, input, error).status), tokens};
  }
  if (rules.errors_per_input || total == 0) return absl::OkStatus();
  return CombineInputFaults(std::move(faults), total);
}

}  // namespace encoderd
