#include "server/pipeline/side_lane.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "engine/base/start_thread.h"
#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"

namespace encoderd {

struct SideLane::Job final : public PipelineCall {
  Job(uint64_t caller, absl::Time deadline, absl::Duration max_queue_time,
      Work work)
      : caller(caller),
        deadline(deadline),
        max_queue_time(max_queue_time),
        work(std::move(work)) {}

  void Cancel() override { cancelled = true; }

  const uint64_t caller;
  const absl::Time deadline;
  const absl::Duration max_queue_time;
  const absl::Time limit = SteadyNow() + max_queue_time;
  Work work;
  std::atomic<bool> cancelled{false};
};

SideLane::SideLane(CallHost* host, PipelineObserver* observer)
    : host_(*host),
      observer_(*observer),
      thread_(StartThread("side", [this] { Run(); })) {}

SideLane::~SideLane() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    available_.NotifyAll(&mutex_);
  }
  thread_.join();
}

std::shared_ptr<PipelineCall> SideLane::Add(uint64_t caller,
                                            absl::Time deadline,
                                            absl::Duration max_queue_time,
                                            Work work) {
  auto job =
      std::make_shared<Job>(caller, deadline, max_queue_time, std::move(work));
  std::optional<absl::Status> refused;
  {
    MutexLock lock(&mutex_);
    const auto own = std::count_if(
        waiting_.begin(), waiting_.end(),
        [&](const auto& other) { return other->caller == caller; });
    if (own >= kMaxWaitingOfOne) {
      refused = CallerFullError(QueueUnit::kCalls, own, 1, kMaxWaitingOfOne);
    } else if (static_cast<int64_t>(waiting_.size()) >= kMaxWaiting) {
      refused = QueueFullError(QueueUnit::kCalls, kMaxWaiting, 1, kMaxWaiting);
    } else {
      waiting_.push_back(job);
      available_.NotifyOne(&mutex_);
    }
  }
  if (refused.has_value()) Finish(job.get(), *refused);
  return job;
}

void SideLane::Finish(Job* job, const absl::Status& status) {
  FinishCall(&job->work, status, &host_);
}

void SideLane::Run() {
  while (true) {
    std::shared_ptr<Job> job;
    {
      MutexLock lock(&mutex_);
      while (waiting_.empty()) {
        if (stopped_) return;
        available_.Wait(&mutex_);
      }
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    absl::Status status;
    if (job->cancelled) {
      status = CancelledError();
    } else if (SteadyNow() >= job->deadline) {
      status = ExpiredError();
    } else if (SteadyNow() >= job->limit) {
      status = ExpiredError(job->max_queue_time);
    }
    if (!status.ok()) observer_.Cancelled(Stage::kQueue, 1);
    Finish(job.get(), status);
  }
}

}  // namespace encoderd
