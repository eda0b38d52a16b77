#include "server/pipeline/work_queue.h"

#include <algorithm>
#include <utility>

#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

absl::Status Lost(absl::string_view error_id) {
  return DeviceFaultError(absl::StatusCode::kUnavailable, error_id,
                          "the device is lost and the server is shutting down: "
                          "retry on another server");
}

}  // namespace

void WorkQueue::Add(std::shared_ptr<Call> call, std::vector<int32_t> lengths,
                    absl::Time now) {
  const auto sequences = static_cast<int32_t>(lengths.size());
  MutexLock lock(&mutex_);
  call->queued_at = now;
  if (lost()) call->Fail(Call::Fate::kFailed, Lost(lost_id_));
  const Call::Fate fate = call->fate();
  if (fate != Call::Fate::kAlive) {
    // Marked after it was tokenized, when Discard did not find it here.
    if (fate == Call::Fate::kGone) {
      observer_.Cancelled(Stage::kQueue, sequences);
    }
    dropped_.push_back({std::move(call), sequences});
    available_.NotifyOne(&mutex_);
    return;
  }
  policy_.Add(call->id, call->caller.id, call->latest_start(),
              std::move(lengths));
  const uint64_t id = call->id;
  calls_.emplace(id, Entry{std::move(call), sequences});
  Changed();
  available_.NotifyOne(&mutex_);  // which wakes others if it leaves work
}

void WorkQueue::Discard(const Call& call) {
  MutexLock lock(&mutex_);
  const int32_t sequences = policy_.Remove(call.id);
  if (sequences == 0) return;
  Drop(call.id, sequences);
  Changed();
  available_.NotifyOne(&mutex_);
}

void WorkQueue::Drop(uint64_t id, int32_t sequences) {
  const auto found = calls_.find(id);
  if (found->second.call->fate() == Call::Fate::kGone) {
    observer_.Cancelled(Stage::kQueue, sequences);
  }
  dropped_.push_back({std::move(found->second.call), sequences});
  calls_.erase(found);
}

bool WorkQueue::Take(const BatchLimits& limits, Clock clock, Work* work) {
  MutexLock lock(&mutex_);
  std::erase_if(busy_, [&](const Busy& busy) { return busy.work == work; });
  work->taken.clear();
  while (policy_.empty() && dropped_.empty()) {
    if (stopped_) return false;
    ++sleeping_;
    available_.Wait(&mutex_);
    --sleeping_;
  }
  BatchLimits here = limits;
  here.idle_sessions = limits.sessions - static_cast<int>(busy_.size());
  const absl::Time now = clock();
  Hand(policy_.Next(here, now), now, work);
  if (!work->taken.empty()) busy_.push_back({work, now});
  // Two, so that many are awake after a few steps.
  const int64_t left = policy_.waiting_sequences();
  for (int64_t i = 0; i < std::min<int64_t>({left, sleeping_, 2}); ++i)
    available_.NotifyOne(&mutex_);
  return true;
}

void WorkQueue::TryTake(const BatchLimits& limits, absl::Time now, Work* work) {
  MutexLock lock(&mutex_);
  Hand(policy_.Next(limits, now), now, work);
}

void WorkQueue::TakeSmall(int64_t max_tokens, absl::Time now, Work* work) {
  MutexLock lock(&mutex_);
  Hand(policy_.NextSmall(max_tokens, now), now, work);
}

int64_t WorkQueue::busy() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(busy_.size());
}

absl::Duration WorkQueue::OldestBatchAge(absl::Time now) const {
  MutexLock lock(&mutex_);
  if (busy_.empty()) return absl::ZeroDuration();
  // It may have been taken since `now` was read.
  return std::max(now - busy_.front().since, absl::ZeroDuration());
}

void WorkQueue::Hand(const BatchDecision& decision, absl::Time now,
                     Work* work) {
  for (const auto& [id, sequences] : decision.expired) {
    Call& call = *calls_.find(id)->second.call;
    call.Fail(Call::Fate::kGone, call.ExpiredNow());
    Drop(id, sequences);
  }
  work->dropped.clear();
  work->dropped.swap(dropped_);
  work->taken.clear();
  work->small = decision.small;
  for (const auto& [request, first, count] : decision.slices) {
    const auto found = calls_.find(request);
    Entry& entry = found->second;
    Call& call = *entry.call;
    if (call.first_batch_at == absl::InfinitePast()) {
      call.first_batch_at = now;
      observer_.StageDuration(Stage::kQueue, now - call.queued_at);
      policy_.SetDeadline(request, call.deadline);
    }
    entry.left -= count;
    if (entry.left == 0) {
      work->taken.push_back({std::move(entry.call), {first, count}});
      calls_.erase(found);
    } else {
      work->taken.push_back({entry.call, {first, count}});
    }
  }
  Changed();
}

void WorkQueue::Lose(absl::string_view error_id) {
  MutexLock lock(&mutex_);
  if (lost()) return;
  lost_id_ = std::string(error_id);
  lost_.store(true, std::memory_order_release);
  for (const auto& [id, sequences] : policy_.RemoveAll()) {
    calls_.find(id)->second.call->Fail(Call::Fate::kFailed, Lost(lost_id_));
    Drop(id, sequences);
  }
  Changed();
  available_.NotifyAll(&mutex_);
}

absl::Status WorkQueue::LostError() const {
  MutexLock lock(&mutex_);
  return Lost(lost_id_);
}

void WorkQueue::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  available_.NotifyAll(&mutex_);
}

void WorkQueue::Changed() {
  small_waits_.store(sleeping_ == 0 && policy_.small_waits(),
                     std::memory_order_relaxed);
  observer_.QueueChanged(policy_.waiting_sequences(), policy_.waiting_tokens());
}

}  // namespace encoderd
