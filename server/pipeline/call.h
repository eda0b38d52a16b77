// One request in the pipeline: its caller, its state, and the joiner that
// answers exactly once. `inputs` (tokenizing) and `sequences` (computing) hold
// the state of the stages.
//
// Which thread answers depends on how far the call came. Rejected: the thread
// that submits it. Without sequences (marked while it was tokenized, ids only,
// every input at fault): the thread that tokenized its last input. With
// sequences, by counting: each is accounted for exactly once, computed or
// dropped, and the thread that accounts for the last one finishes the call.
// Cancellation, expiry and faults only mark the call and remove its sequences
// from the queue; threads that hold the others drop them when they see the
// mark.
//
// Thread rule: different threads may work on different inputs or sequences of
// one call; the rest is atomic or guarded. Finish runs `done` without any lock.
#ifndef ENCODERD_SERVER_PIPELINE_CALL_H_
#define ENCODERD_SERVER_PIPELINE_CALL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/pipeline/admission.h"
#include "server/pipeline/inputs.h"
#include "server/pipeline/request.h"
#include "server/pipeline/sequences.h"

namespace encoderd {

class WorkQueue;

// Notified when a call's `done` has returned and is destroyed, with its
// captures. Called last: the host may be destroyed then.
class CallHost {
 public:
  virtual ~CallHost() = default;
  virtual void CallFinished() = 0;
};

// Runs what a call ends with, and drops what it throws: it answers its own
// errors, and the call is over in any case. Its captures are destroyed before
// the host is notified: they may belong to the host.
template <typename Last, typename Argument>
void FinishCall(Last* last, Argument&& argument, CallHost* host) {
  try {
    (*last)(std::forward<Argument>(argument));
  } catch (...) {
  }
  *last = nullptr;
  host->CallFinished();
}

class Call final : public PipelineCall {
 public:
  using Done = std::function<void(absl::StatusOr<PipelineResult>)>;
  enum class Fate {
    kAlive,
    kGone,    // canceled or expired
    kFailed,  // rejected, or a device fault
  };

  Call(uint64_t id, PipelineRequest request, Done done, CallHost* host,
       std::shared_ptr<WorkQueue> queue, absl::Time now);

  void Cancel() override;

  // When it expires unless one of its sequences was in a batch by then; later
  // only the caller's deadline counts.
  absl::Time latest_start() const {
    return std::min(deadline, submitted_at + max_queue_time);
  }
  // The error of a call that has expired.
  absl::Status ExpiredNow() const;

  // Marks the call; the first mark becomes the answer. False if the call is
  // already marked or finished.
  bool Fail(Fate fate, const absl::Status& status);
  Fate fate() const { return fate_.load(std::memory_order_acquire); }
  bool alive() const { return fate() == Fate::kAlive; }

  // After the last input was tokenized, before anything is computed: creates
  // the sequences and returns their lengths in tokens. May be empty.
  std::vector<int32_t> StartComputing(const InputEncoder& encoder);
  // After StartComputing. Counts finished sequences, computed or dropped;
  // finishes the call after the last one, so the caller must hold its own
  // reference.
  void Account(int64_t count, absl::Time now);
  // Answers, once: from Account, or instead of it if the call has no sequences.
  void Finish(absl::Time now);

  const uint64_t id;
  const Caller caller;
  const absl::Time deadline;            // the caller's
  const absl::Duration max_queue_time;  // as in PipelineRequest
  const absl::Time submitted_at;

  Inputs inputs;
  Sequences sequences;
  // Used by the thread that tokenizes last, then by the finishing one.
  Permit permit;

  // Written by the queue, under its lock.
  absl::Time queued_at;
  absl::Time first_batch_at = absl::InfinitePast();

 private:
  PipelineResult TakeResult(int64_t tokens, absl::Time now);

  const std::shared_ptr<WorkQueue> queue_;
  CallHost* const host_;
  Done done_;  // used by the finishing thread

  std::atomic<Fate> fate_{Fate::kAlive};
  std::atomic<int64_t> left_to_compute_{0};

  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_CALL_H_
