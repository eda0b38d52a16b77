// Work that waits for a device: BatchPolicy with a lock, the calls behind its
// ids, and the threads of the Sessions that wait for it.
//
// Sequences leave the queue in a batch or dropped (their call was canceled,
// expired or failed). Dropped ones are handed to the next thread that takes,
// because Cancel must not answer calls. Thread-safe; no call is answered
// under the lock.
#ifndef ENCODERD_SERVER_PIPELINE_WORK_QUEUE_H_
#define ENCODERD_SERVER_PIPELINE_WORK_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/pipeline/batch_policy.h"
#include "server/pipeline/call.h"
#include "server/pipeline/queue_pace.h"
#include "server/pipeline/request.h"

namespace encoderd {

// What a thread takes: a batch, and calls whose sequences were dropped.
struct Work {
  struct Taken {
    std::shared_ptr<Call> call;
    Slice slice;  // of its sequences
  };
  struct Dropped {
    std::shared_ptr<Call> call;
    int32_t sequences = 0;
  };
  std::vector<Taken> taken;
  bool small = false;  // only small requests were taken
  std::vector<Dropped> dropped;
};

class WorkQueue {
 public:
  using Clock = absl::Time (*)();

  // threads: how many Take, so that Take need not allocate for them.
  WorkQueue(const FairShares& shares, PipelineObserver* observer,
            size_t threads = 1)
      : observer_(*observer), policy_(shares) {
    busy_.reserve(threads);
  }

  // All sequences of a call, tokens of each; admitted before.
  void Add(std::shared_ptr<Call> call, std::vector<int32_t> lengths,
           absl::Time now);
  // Drops the waiting sequences of a marked call.
  void Discard(const Call& call);

  // Waits until there is something to take (true) or the queue is stopped and
  // empty (false). limits.idle_sessions is filled in: a Session is idle unless
  // its thread works on what it took. Each thread brings the same *work
  // every time.
  bool Take(const BatchLimits& limits, Clock clock, Work* work);
  // For tests: Take without waiting, limits as given; *work may stay empty.
  void TryTake(const BatchLimits& limits, absl::Time now, Work* work);
  // Only small requests, for a thread in the middle of a batch, without
  // waiting; *work may stay empty.
  void TakeSmall(int64_t max_tokens, absl::Time now, Work* work);
  // Whether TakeSmall would find requests that no idle thread takes; cheap.
  bool small_waits() const {
    return small_waits_.load(std::memory_order_relaxed);
  }

  // Threads that work on what they took.
  int64_t busy() const;
  // How long ago the first of them took it; 0: none works.
  absl::Duration OldestBatchAge(absl::Time now) const;

  // The device is lost: waiting and new requests get UNAVAILABLE.
  void Lose(absl::string_view error_id);
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  absl::Status LostError() const;

  // How fast the queue is emptied.
  QueuePace& pace() { return pace_; }

  // No more Adds come; Take returns false once the queue is empty.
  void Stop();

 private:
  struct Entry {
    std::shared_ptr<Call> call;
    int32_t left = 0;  // sequences that wait
  };
  // A thread that took work.
  struct Busy {
    const Work* work = nullptr;  // whose thread it is; never read
    absl::Time since;
  };

  // The decision of the policy -> *work.
  void Hand(const BatchDecision& decision, absl::Time now, Work* work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The call's sequences have left the policy: hands them to the next thread.
  void Drop(uint64_t id, int32_t sequences)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  PipelineObserver& observer_;
  QueuePace pace_;
  std::atomic<bool> lost_{false};
  std::atomic<bool> small_waits_{false};

  mutable Mutex mutex_;
  CondVar available_;
  BatchPolicy policy_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, Entry> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<Work::Dropped> dropped_ ABSL_GUARDED_BY(mutex_);
  std::string lost_id_ ABSL_GUARDED_BY(mutex_);
  std::vector<Busy> busy_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  int sleeping_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_WORK_QUEUE_H_
