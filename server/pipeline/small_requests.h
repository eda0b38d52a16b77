// Small requests in the pauses of a long pass: what a batch thread does between
// two ops of its batch, so that a short text does not wait for the whole batch.
//
// A separate Session computes them. A pause begins only while pauses have taken
// at most half of the pass's time, so they take at most half of it plus one
// small batch. One object per batch thread, used by that thread only.
#ifndef ENCODERD_SERVER_PIPELINE_SMALL_REQUESTS_H_
#define ENCODERD_SERVER_PIPELINE_SMALL_REQUESTS_H_

#include "absl/time/time.h"
#include "engine/base/pauses.h"
#include "engine/session.h"
#include "server/pipeline/batch_runner.h"
#include "server/pipeline/request.h"
#include "server/pipeline/work_queue.h"

namespace encoderd {

class SmallRequests final : public PassPauses {
 public:
  // All outlive it.
  SmallRequests(Session* session, WorkQueue* queue, const IdLimits& limits,
                PipelineObserver* observer, WorkQueue::Clock clock)
      : max_tokens_(session->max_batch_tokens()),
        queue_(*queue),
        clock_(clock),
        runner_(session, queue, limits, observer, clock) {}

  void BeginPass(absl::Time now) override {
    began_ = now;
    spent_ = absl::ZeroDuration();
  }
  absl::Duration spent() const override { return spent_; }

  bool Wanted() override {
    return queue_.small_waits() && spent_ * 2 <= clock_() - began_;
  }
  void Run() noexcept override;

 private:
  const int64_t max_tokens_;
  WorkQueue& queue_;
  const WorkQueue::Clock clock_;
  BatchRunner runner_;
  Work work_;
  absl::Time began_;
  absl::Duration spent_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_SMALL_REQUESTS_H_
