// Thread "side": long work that is neither tokenizing nor a batch (looking
// through a table). One at a time, so that it never takes more than one core
// and delays no text; the others wait in order, at most kMaxWaiting, and at
// most kMaxWaitingOfOne of one caller.
//
// Work that is canceled or past its deadline is answered at its turn and keeps
// its place until then: this bounds a caller that cancels and resubmits.
// Thread-safe.
#ifndef ENCODERD_SERVER_PIPELINE_SIDE_LANE_H_
#define ENCODERD_SERVER_PIPELINE_SIDE_LANE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/pipeline/call.h"
#include "server/pipeline/request.h"

namespace encoderd {

class SideLane {
 public:
  // Gets OK, or the reason not to work. What it throws is dropped.
  using Work = std::function<void(const absl::Status&)>;

  static constexpr int64_t kMaxWaiting = 16;
  static constexpr int64_t kMaxWaitingOfOne = 4;

  // Both outlive the lane; the host is notified of each Add once its work has
  // run.
  SideLane(CallHost* host, PipelineObserver* observer);
  // Finishes what waits, joins the thread.
  ~SideLane();
  SideLane(const SideLane&) = delete;
  SideLane& operator=(const SideLane&) = delete;

  // Runs `work` on the thread, or here with QUEUE_FULL; with EXPIRED_IN_QUEUE
  // if it is still waiting at the deadline or after max_queue_time. If it
  // throws (no memory), `work` does not run and the host is not notified.
  std::shared_ptr<PipelineCall> Add(uint64_t caller, absl::Time deadline,
                                    absl::Duration max_queue_time, Work work);

 private:
  struct Job;

  void Run();
  void Finish(Job* job, const absl::Status& status);

  CallHost& host_;
  PipelineObserver& observer_;

  Mutex mutex_;
  CondVar available_;
  std::deque<std::shared_ptr<Job>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_SIDE_LANE_H_
