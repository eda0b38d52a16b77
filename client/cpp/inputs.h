// A list of inputs, cut into calls. Not thread-safe: one list, one thread.
#ifndef ENCODERD_CLIENT_CPP_INPUTS_H_
#define ENCODERD_CLIENT_CPP_INPUTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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

// The next input, or, in `refused`, why it cannot be sent; false at the end.
// An error ends the list with that error once all before it is answered.
using CheckedSource = std::function<absl::StatusOr<bool>(
    v1::Input* input, absl::Status* refused)>;

// Consecutive inputs of a list, as one call takes them.
struct Cut {
  int64_t first_input = 0;           // its place in the list
  std::vector<int> sent_as;          // of each: its place in the call; -1: none
  std::vector<absl::Status> errors;  // of each: why it was not sent; else OK
};

// Makes two calls of one of several inputs: moves the second half of them from
// `request` to `rest`, which gets the other fields as they are, and from `cut`
// to the Cut that is returned.
template <typename Request>
Cut SplitInHalves(Cut* cut, Request* request, Request* rest) {
  google::protobuf::RepeatedPtrField<v1::Input> inputs;
  inputs.Swap(request->mutable_inputs());
  *rest = *request;
  const size_t kept = cut->sent_as.size() / 2;
  Cut second;
  second.first_input = cut->first_input + static_cast<int64_t>(kept);
  for (size_t i = 0; i < cut->sent_as.size(); ++i) {
    int& at = cut->sent_as[i];
    if (at >= 0) {
      Request* into = i < kept ? request : rest;
      const int moved = into->inputs_size();
      into->add_inputs()->Swap(inputs.Mutable(at));
      at = moved;
    }
    if (i < kept) continue;
    second.sent_as.push_back(at);
    second.errors.push_back(cut->errors[i]);
  }
  cut->sent_as.resize(kept);
  cut->errors.resize(kept);
  return second;
}

// Cuts a source into calls of at most `max_inputs` inputs and about `max_bytes`
// bytes of text. An input of that size or more travels alone, so that a call
// that is too large names it.
class InputCutter {
 public:
  // `per_input`: an input that cannot be sent costs its own place only; else it
  // ends the list. The source's first input is number `first_input`. `ready`:
  // see ClientOptions.
  InputCutter(CheckedSource source, const std::function<bool()>& ready,
              int max_inputs, int64_t max_bytes, bool per_input,
              int64_t first_input = 0)
      : source_(std::move(source)),
        ready_(ready),
        max_inputs_(max_inputs),
        max_bytes_(max_bytes),
        per_input_(per_input),
        index_(first_input) {}

  // Appends the inputs of the next call. A Cut of none: the list is at its end,
  // and status() says why. Texts that are not UTF-8 are not sent: INVALID_UTF8.
  // Waits for the first input only.
  Cut Next(google::protobuf::RepeatedPtrField<v1::Input>* inputs);

  // Later calls have fewer inputs than the server refused with `refusal`
  // (TOO_MANY_INPUTS) in a call of `inputs`: as many as it says that it takes.
  void TakeFewer(const absl::Status& refusal, int64_t inputs);

  // Whether Next would not wait.
  bool Ready() const {
    return held_ || ended_ || ready_ == nullptr || ready_();
  }
  bool ended() const { return ended_ && !held_; }
  // OK, the source's own error, or what was wrong with the input that ended
  // the list.
  const absl::Status& status() const { return status_; }

 private:
  // Reads the next input into input_, refused_; false at the end.
  bool Read();

  CheckedSource source_;
  const std::function<bool()> ready_;
  int64_t max_inputs_;
  const int64_t max_bytes_;
  const bool per_input_;
  int64_t index_;  // of the input that is read next
  v1::Input input_;
  absl::Status refused_;
  bool held_ = false;  // input_ was read and waits for the next call
  bool ended_ = false;
  absl::Status status_;
};

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_INPUTS_H_
