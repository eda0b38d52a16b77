// The inputs of one request while they are tokenized: the first stage of a
// call.
//
// Every input is accounted for exactly once; the thread that accounts for the
// last one continues with the call. Thread rule: each input is touched by one
// thread at a time; faults are guarded, counts atomic.
#ifndef ENCODERD_SERVER_PIPELINE_INPUTS_H_
#define ENCODERD_SERVER_PIPELINE_INPUTS_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/input_encoder.h"
#include "server/pipeline/request.h"

namespace encoderd {

class Inputs {
 public:
  // Takes the inputs out of *request.
  explicit Inputs(PipelineRequest* request);

  int64_t size() const { return size_; }
  bool ids_only() const { return ids_only_.has_value(); }
  const EncodeRules& rules() const { return rules_; }
  // Empty once the call is answered.
  const std::vector<Input>& waiting() const { return inputs_; }

  // Input `index` -> ids; frees its text.
  void Tokenize(int64_t index, const InputEncoder& encoder,
                TokenizerScratch* scratch, Encoding* buffer);
  // Counts finished inputs, tokenized or not, and their time; true if they were
  // the last ones.
  bool Account(int64_t count, absl::Duration time);

  // --- After the last one.
  // The faults of all inputs in one status (none with errors_per_input), or
  // REQUEST_TOO_LARGE if the answer cannot fit.
  absl::Status Check() const;
  // Tokens to compute, or ids if only these are requested.
  int64_t tokens() const;
  absl::Duration tokenize_time() const;
  WindowRule WindowsOf(const InputEncoder& encoder) const {
    return encoder.RuleOf(rules_.window_overlap.value_or(0));
  }
  std::vector<TokenizedInput> TakeTokenized() { return std::move(tokenized_); }
  std::vector<Encoding> TakeEncodings() { return std::move(encodings_); }
  void Clear();

 private:
  absl::Status TokenizeOnly(int64_t index, const InputEncoder& encoder,
                            TokenizerScratch* scratch);
  absl::Status Encode(int64_t index, const InputEncoder& encoder,
                      TokenizerScratch* scratch, Encoding* buffer);
  // Counts a fault; false: it is beyond the listed ones, and only counted.
  bool CountFault(int64_t index);
  void AddFault(InputFault fault);
  int64_t AnswerRows() const;

  const int64_t size_;
  const EncodeRules rules_;
  const std::optional<Tokenizer::EncodeOptions> ids_only_;
  const bool states_;  // asked for, not vectors
  const bool errors_per_input_;
  const AnswerLimit answer_limit_;

  // One element an input.
  std::vector<Input> inputs_;
  std::vector<TokenizedInput> tokenized_;
  std::vector<Encoding> encodings_;  // ids only

  std::atomic<int64_t> left_;
  std::atomic<int64_t> nanoseconds_{0};
  std::atomic<int64_t> window_ids_{0};  // kept of texts in windows
  std::atomic<int64_t> only_ids_{0};    // ids only: made, kept or not

  mutable Mutex mutex_;
  std::vector<InputFault> faults_ ABSL_GUARDED_BY(mutex_);  // the first few
  int64_t total_faults_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_INPUTS_H_
