// One request on its way: its inputs, its ids, its results, and the joiner that
// answers exactly once.
//
// Who answers is decided by counting: every input (tokenising), then every unit
// (computing; units.h) is accounted for exactly once, computed or dropped, and
// the thread that accounts for the last one finishes the call. Cancelling,
// expiry and faults only mark the call and take its units out of the queue;
// whoever holds the others drops them when it sees the mark.
//
// Thread rule: different threads may work on different inputs or units of one
// call; the rest is atomic or guarded. Finish runs `done` without any lock.
#ifndef ENCODERD_SERVER_PIPELINE_CALL_H_
#define ENCODERD_SERVER_PIPELINE_CALL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/pipeline/admission.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/input_encoder.h"
#include "server/pipeline/mutex.h"
#include "server/pipeline/pipeline.h"
#include "server/pipeline/units.h"

namespace encoderd {

class WorkQueue;

// Told when a call's `done` has returned. Called last: the host may go away.
class CallHost {
 public:
  virtual ~CallHost() = default;
  virtual void CallFinished() = 0;
};

class Call final : public PipelineCall {
 public:
  enum class Fate {
    kAlive,
    kGone,    // cancelled or expired
    kFailed,  // refused, or a device fault
  };

  Call(uint64_t id, PipelineRequest request, Pipeline::Done done,
       CallHost* host, std::shared_ptr<WorkQueue> queue, absl::Time now);
  // Ids only.
  Call(uint64_t id, TokenizePipelineRequest request,
       Pipeline::TokenizeDone done, CallHost* host,
       std::shared_ptr<WorkQueue> queue, absl::Time now);

  void Cancel() override;

  // Marks the call; the first mark becomes the answer. False if it came too
  // late (marked or finished before).
  bool Fail(Fate fate, const absl::Status& status);
  Fate fate() const { return fate_.load(std::memory_order_acquire); }
  bool alive() const { return fate() == Fate::kAlive; }

  // Answers. Only the thread that accounted for the last input calls it.
  void Finish(absl::Time now);

  // --- Tokenising: inputs first .. last-1; true if they were the last ones.
  bool EncodeInputs(int64_t first, int64_t last, const InputEncoder& encoder,
                    TokenizerScratch* scratch, Encoding* buffer,
                    absl::Time now);
  // After the last one: OK, or the faults of all inputs in one status. With
  // errors_per_input always OK.
  absl::Status InputFaults() const;
  // After the last one: tokens to compute, or made where they are all that is
  // asked for.
  int64_t tokens() const;
  // After the last one: REQUEST_TOO_LARGE if the answer cannot fit.
  absl::Status AnswerFits() const;
  // After the last one, before anything is computed: makes the units and gives
  // their lengths in tokens. May be none.
  std::vector<int32_t> StartComputing(const InputEncoder& encoder);

  // --- Computing.
  // The result of one unit; values are copied.
  void Deliver(int32_t unit, absl::Span<const float> values);
  // One unit cannot be computed: its input's error with errors_per_input
  // (true), else it marks the call (false).
  bool FailUnit(int32_t unit, const absl::Status& status);
  // Counts units that are done with, computed or dropped; finishes the call
  // after the last one, so the caller must hold a reference of its own.
  void Account(int64_t units, absl::Time now);

  const uint64_t id;
  const uint64_t caller;
  const absl::Time deadline;
  const EncodeRules rules;
  const bool ids_only;
  const absl::Time submitted_at;

  const std::vector<PipelineInput>& inputs() const { return inputs_; }
  int64_t num_inputs() const { return num_inputs_; }
  const TokenSequence& sequence(int32_t unit) const {
    return units_[unit].sequence;
  }
  SequenceOutput output(int32_t unit) const {
    return UnitOutput(output_, encoded_[units_[unit].input]);
  }
  Permit& permit() { return permit_; }

  // Written by the queue, under its lock.
  absl::Time queued_at;
  absl::Time first_batch_at = absl::InfinitePast();

 private:
  void EncodePiece(int64_t first, int64_t last, const InputEncoder& encoder,
                   TokenizerScratch* scratch, Encoding* buffer);
  absl::Status TokenizeOne(int64_t index, const InputEncoder& encoder,
                           TokenizerScratch* scratch);
  absl::Status EncodeOne(int64_t index, const InputEncoder& encoder,
                         TokenizerScratch* scratch, Encoding* buffer);
  int64_t AnswerRows() const;
  PipelineResult TakeResult(int64_t tokens, absl::Time now);

  const int64_t num_inputs_;
  const SequenceOutput output_;
  const bool errors_per_input_ = false;
  const Tokenizer::EncodeOptions encode_options_;
  const AnswerLimit answer_limit_;
  const std::shared_ptr<WorkQueue> queue_;
  CallHost* const host_;

  // One element an input, each touched by one thread at a time.
  std::vector<PipelineInput> inputs_;
  std::vector<EncodedInput> encoded_;
  std::vector<Encoding> encodings_;  // ids only
  // Constant but for each unit's values once computing started.
  std::vector<Unit> units_;

  // Touched by the finishing thread only.
  Pipeline::Done done_;
  Pipeline::TokenizeDone tokenize_done_;
  Permit permit_;

  std::atomic<Fate> fate_{Fate::kAlive};
  std::atomic<int64_t> left_to_encode_;
  std::atomic<int64_t> left_to_compute_;
  std::atomic<int64_t> tokenize_ns_{0};
  std::atomic<int64_t> window_ids_{0};  // kept of texts in windows
  std::atomic<int64_t> only_ids_{0};    // ids only: made, kept or not

  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<InputFault> faults_ ABSL_GUARDED_BY(mutex_);  // the first few
  int64_t total_faults_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_CALL_H_
