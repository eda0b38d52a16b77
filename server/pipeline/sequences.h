// What a device computes for one request: the second stage of a call, which
// joins its results. An input is one sequence; a text that is too long has one
// per window, if windows were requested; an input at fault has none.
//
// Thread rule: Start and Join by one thread; between them each sequence is
// touched by one thread at a time, and errors are guarded.
#ifndef ENCODERD_SERVER_PIPELINE_SEQUENCES_H_
#define ENCODERD_SERVER_PIPELINE_SEQUENCES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/batch.h"
#include "engine/session.h"
#include "server/base/mutex.h"
#include "server/pipeline/input_encoder.h"
#include "server/pipeline/request.h"

namespace encoderd {

struct Sequence {
  int32_t input = 0;
  TokenSequence ids;
  int64_t weight = 1;         // of a window: its tokens without special ones
  std::vector<float> values;  // results of the device; [H] or [rows,H]
  int64_t rows = 1;
};

class Sequences {
 public:
  explicit Sequences(const PipelineRequest& request);

  // The sequences of all inputs, in order; their lengths in tokens.
  std::vector<int32_t> Start(const WindowRule& windows,
                             std::vector<TokenizedInput> inputs);

  const TokenSequence& ids(int32_t index) const {
    return sequences_[index].ids;
  }
  // What the device must return: for a window, its vector before normalization.
  SequenceOutput output(int32_t index) const;

  // Copies results of the device; of states only the requested rows.
  void Deliver(int32_t index, absl::Span<const float> values);
  // One sequence cannot be computed: its input's error (true), or, without
  // errors_per_input, the whole request's (false: nothing is done here).
  bool Fail(int32_t index, const absl::Status& status);

  // The answers of all inputs; takes the values.
  std::vector<InputResult> Join();
  void Clear();

 private:
  const SequenceOutput output_;
  const bool without_special_tokens_;
  const bool errors_per_input_;

  // Constant once started, except for an input's status and a sequence's
  // values.
  std::vector<TokenizedInput> inputs_;
  std::vector<Sequence> sequences_;
  Mutex mutex_;  // of the statuses
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_SEQUENCES_H_
