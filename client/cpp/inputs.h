// A list of inputs, cut into calls. Not thread-safe: one list, one thread.
#ifndef ENCODERD_CLIENT_CPP_INPUTS_H_
#define ENCODERD_CLIENT_CPP_INPUTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "encoderd/v1/encoder.pb.h"

namespace encoderd::client {

// Fills the next input and returns true; false at the end of the list. An
// error ends the whole list with that error.
using InputSource = std::function<absl::StatusOr<bool>(v1::Input* input)>;

// A source over `texts`, which must outlive it.
InputSource FromTexts(absl::Span<const std::string> texts);

// INVALID_ARGUMENT (INVALID_UTF8) for a text of `input` that is not UTF-8; the
// input is called inputs[index].
absl::Status CheckUtf8(const v1::Input& input, int64_t index);

// Cuts a source into calls of at most `max_inputs` inputs and about
// `max_bytes` bytes of text (a single larger input still makes a call).
class InputCutter {
 public:
  InputCutter(InputSource source, int max_inputs, int64_t max_bytes)
      : source_(std::move(source)),
        max_inputs_(max_inputs),
        max_bytes_(max_bytes) {}

  // Appends the inputs of the next call; none at the end of the list.
  // INVALID_ARGUMENT (INVALID_UTF8) for a text that is not UTF-8; the source's
  // own error. Inputs read before the error are still appended, so that they
  // can be sent: the error comes back from the following call.
  absl::Status Next(google::protobuf::RepeatedPtrField<v1::Input>* inputs);

 private:
  InputSource source_;
  const int max_inputs_;
  const int64_t max_bytes_;
  int64_t index_ = 0;
  bool ended_ = false;
  absl::Status pending_;
};

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_INPUTS_H_
