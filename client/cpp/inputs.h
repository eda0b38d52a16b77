// A list of inputs, cut into calls. Not thread-safe: one list, one thread.
#ifndef ENCODERD_CLIENT_CPP_INPUTS_H_
#define ENCODERD_CLIENT_CPP_INPUTS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "encoderd/v1/encoder.pb.h"

namespace encoderd::client {

// A list of inputs that is read as it is sent.
struct InputSource {
  // Fills the next input and returns true; false at the end of the list. An
  // error ends the list with that error once all before it is answered. In
  // `refused`, why the input cannot be sent: under ON_ERROR_PER_INPUT, and in
  // EmbedBulk, this costs only its answer, otherwise it ends the list.
  std::function<absl::StatusOr<bool>(v1::Input* input, absl::Status* refused)>
      next;
  // Whether `next` would return without waiting. While it would not, the inputs
  // read so far are sent, and answers are returned as they arrive. Not called
  // before every `next`: the first input of a request is waited for. Null: it
  // always would.
  std::function<bool()> ready = nullptr;
};

// A source over `texts`, which must outlive it.
InputSource FromTexts(absl::Span<const std::string> texts);

// INVALID_ARGUMENT (INVALID_UTF8) for a text of `input` that is not UTF-8; the
// input is called inputs[index].
absl::Status CheckUtf8(const v1::Input& input, int64_t index);

// Consecutive inputs of a list, as one call takes them.
struct Cut {
  int64_t first_input = 0;           // its place in the list
  std::vector<int> sent_as;          // of each: its place in the call; -1: none
  std::vector<absl::Status> errors;  // of each: why it was not sent; else OK
};

// How many inputs a call may have after the refusal of one of `inputs`, at
// least two: as many as a TOO_MANY_INPUTS says that the server takes, at least
// one; else half of them.
int64_t FewerInputs(const absl::Status& refusal, int64_t inputs);

// Makes calls of at most `most` inputs, in order, of the one of `request` and
// its `cut`. Each gets the other fields of `request` as they are.
template <typename Request>
std::vector<std::pair<Cut, Request>> Split(const Cut& cut, Request request,
                                           int64_t most) {
  google::protobuf::RepeatedPtrField<v1::Input> inputs;
  inputs.Swap(request.mutable_inputs());
  std::vector<std::pair<Cut, Request>> calls;
  for (size_t i = 0; i < cut.sent_as.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (place % most == 0) {
      calls.emplace_back(Cut{cut.first_input + place, {}, {}}, request);
    }
    auto& [part, its] = calls.back();
    const bool sent = cut.sent_as[i] >= 0;
    part.sent_as.push_back(sent ? its.inputs_size() : -1);
    part.errors.push_back(cut.errors[i]);
    if (sent) its.add_inputs()->Swap(inputs.Mutable(cut.sent_as[i]));
  }
  return calls;
}

// Cuts a source into calls of at most `max_inputs` inputs and about `max_bytes`
// bytes of text. An input of that size or more travels alone, so that a call
// that is too large names it.
class InputCutter {
 public:
  // `per_input`: an input that cannot be sent costs its own place only; else it
  // ends the list. The source's first input is number `first_input`.
  InputCutter(InputSource source, int max_inputs, int64_t max_bytes,
              bool per_input, int64_t first_input = 0)
      : source_(std::move(source)),
        max_inputs_(max_inputs),
        max_bytes_(max_bytes),
        per_input_(per_input),
        index_(first_input) {}

  // Appends the inputs of the next call. A Cut of none: the list is at its end,
  // and status() says why. Texts that are not UTF-8 are not sent: INVALID_UTF8.
  // Waits for the first input only.
  Cut Next(google::protobuf::RepeatedPtrField<v1::Input>* inputs);

  // Later calls have at most `inputs` inputs.
  void TakeFewer(int64_t inputs) {
    max_inputs_ = std::min(max_inputs_, inputs);
  }

  // Later calls have about `bytes` bytes of text at most.
  void TakeSmaller(int64_t bytes) { max_bytes_ = std::min(max_bytes_, bytes); }

  // Whether Next would not wait.
  bool Ready() const {
    return held_ || ended_ || source_.ready == nullptr || source_.ready();
  }
  bool ended() const { return ended_ && !held_; }
  // OK, the source's own error, or what was wrong with the input that ended
  // the list.
  const absl::Status& status() const { return status_; }

 private:
  // Reads the next input into input_, refused_; false at the end.
  bool Read();

  const InputSource source_;
  int64_t max_inputs_;
  int64_t max_bytes_;
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
