// A mutex and a condition variable with Abseil's thread annotations.
//
// Over the standard library's, not Abseil's: distributions ship Abseil without
// ThreadSanitizer's hooks, so the sanitizer would not see what absl::Mutex
// orders and the pipeline's tests could not run under it without suppressions.
#ifndef ENCODERD_SERVER_PIPELINE_MUTEX_H_
#define ENCODERD_SERVER_PIPELINE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace encoderd {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Wait in a loop over the condition: wake-ups may be spurious.
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns at `until` at the latest.
  void WaitUntil(Mutex* mutex, absl::Time until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (until == absl::InfiniteFuture()) return Wait(mutex);
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait_until(lock, absl::ToChronoTime(until));
    lock.release();
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_MUTEX_H_
