// The inputs of a request: their number, and the fault of each. Checked before
// anything is spent on a request. An adapter may count by the same rule before
// it parses; the pipeline finds what only tokenizing shows (the length of a
// text).
//
// Thread-safe: plain functions. Errors: INVALID_ARGUMENT with an ErrorDetail,
// listing all inputs at fault. No error contains a text.
#ifndef ENCODERD_SERVER_API_INPUTS_H_
#define ENCODERD_SERVER_API_INPUTS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/batch.h"
#include "server/pipeline/input.h"

namespace encoderd {

struct RequestLimits {
  int32_t max_inputs = 0;        // of one request
  int64_t max_answer_bytes = 0;  // of one answer
};

// NO_INPUTS, TOO_MANY_INPUTS.
absl::Status CheckInputCount(int64_t count, const RequestLimits& limits);

// EMPTY_INPUT.
absl::Status EmptyInputError(absl::string_view message);

// The least that the error of one input takes in an answer: reason, domain,
// index, message and the names of their types.
inline constexpr int64_t kLeastErrorBytes = 192;

// What the inputs of a request share.
struct InputRules {
  std::string prompt;  // put before each text
  IdLimits limits;
  // An input at fault becomes a RefusedInput; the others continue.
  bool errors_per_input = false;
  int64_t max_answer_bytes = std::numeric_limits<int64_t>::max();
};

// Finds empty texts and ids outside their tables; a RefusedInput already has
// its fault. Ids are unsigned in the contract: an error shows a negative one as
// the number with the same bits. With errors_per_input, REQUEST_TOO_LARGE as
// soon as the errors alone exceed max_answer_bytes.
absl::Status CheckInputs(const InputRules& rules, std::vector<Input>* inputs);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_API_INPUTS_H_
