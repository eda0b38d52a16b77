// What the pipeline works on:
//
//   Input     what a caller sends: one text, one pair, or one list of ids
//   Sequence  what a device computes: the ids of an input, or of one window of
//             it (sequences.h)
//   Slice     consecutive inputs or sequences of one request, worked on
//             together
//
// Plain values, no threads.
#ifndef ENCODERD_SERVER_PIPELINE_INPUT_H_
#define ENCODERD_SERVER_PIPELINE_INPUT_H_

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/batch.h"

namespace encoderd {

struct TextInput {
  std::string text;
};
struct PairInput {
  std::string first;
  std::string second;
};
// An input found at fault before it reached the pipeline; there, `error` is
// complete (MakeInputFault).
struct RefusedInput {
  absl::Status error;
  int64_t token_count = 0;  // of a list of ids; else 0: nothing counted them
  bool complete = true;     // false: CheckInputs (server/api) completes it
};
// A list of ids has passed ValidateSequence before it reaches the pipeline.
using Input = std::variant<TextInput, PairInput, TokenSequence, RefusedInput>;

// Inputs or sequences first .. first+count-1 of a request.
struct Slice {
  int32_t first = 0;
  int32_t count = 0;
};

// Bytes that `input` holds while it waits.
int64_t InputBytes(const Input& input);
// The name of its field in the contract: "text", "pair", "tokens".
absl::string_view ContentName(const Input& input);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_INPUT_H_
