// The inputs of a request: how many there may be, and what is wrong with each.
// Checked before anything is spent on a request. An adapter may count by the
// same rule before it parses; what only tokenizing shows (a text's length) the
// pipeline finds.
//
// Thread-safe: plain functions. Errors: INVALID_ARGUMENT with an ErrorDetail,
// all inputs at fault listed. No error repeats a text.
#ifndef ENCODERD_SERVER_API_INPUTS_H_
#define ENCODERD_SERVER_API_INPUTS_H_

#include <cstdint>
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

// What the inputs of one request have in common.
struct InputRules {
  std::string prompt;  // put before each text
  IdLimits limits;
  // What is at fault becomes a RefusedInput, and the others go on.
  bool errors_per_input = false;
};

// Texts that are empty and ids that no table has; a RefusedInput brings its own
// fault. Ids are unsigned in the contract: a negative one is named as the
// number with the same bits.
absl::Status CheckInputs(const InputRules& rules, std::vector<Input>* inputs);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_API_INPUTS_H_
