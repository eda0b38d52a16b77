// A mutex and a condition variable with Abseil's thread annotations.
//
// Over the standard library's, not Abseil's: distributions ship Abseil without
// ThreadSanitizer's hooks, so the sanitizer would not see what absl::Mutex
// orders.
#ifndef ENCODERD_SERVER_BASE_MUTEX_H_
#define ENCODERD_SERVER_BASE_MUTEX_H_

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"

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

// All waiters use the same mutex. Wait in a loop over the condition: wake-ups
// may be spurious. The last to wait is woken first: its caches are likely the
// warmest.
//
// Every waiter sleeps on a separate std::condition_variable, since glibc before
// 2.41, unless patched, can lose a signal where several threads wait on the
// same one (sourceware.org bug 25847).
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    WaitUntil(mutex, absl::InfiniteFuture());
  }
  // Returns at `until`, by SteadyNow, at the latest. Steps of the wall clock do
  // not change how long it waits.
  void WaitUntil(Mutex* mutex, absl::Time until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    Waiter self;
    self.previous = last_;
    last_ = &self;
    if (until == absl::InfiniteFuture()) {
      self.condition.wait(lock);
    } else {
      self.condition.wait_for(
          lock, absl::ToChronoNanoseconds(std::clamp(
                    until - SteadyNow(), absl::ZeroDuration(), kLongestWait)));
    }
    if (!self.notified) Remove(&self);
    lock.release();
  }
  void NotifyOne(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Waiter* const waiter = last_;
    if (waiter == nullptr) return;
    last_ = waiter->previous;
    waiter->notified = true;
    waiter->condition.notify_one();
  }
  void NotifyAll(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    while (last_ != nullptr) NotifyOne(mutex);
  }

 private:
  // The standard library's clock would overflow at the end of time.
  static constexpr absl::Duration kLongestWait = absl::Hours(1);

  struct Waiter {
    std::condition_variable condition;
    bool notified = false;  // and no longer in the list
    Waiter* previous = nullptr;
  };

  void Remove(const Waiter* waiter) {
    Waiter** link = &last_;
    while (*link != waiter) link = &(*link)->previous;
    *link = waiter->previous;
  }

  Waiter* last_ = nullptr;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_BASE_MUTEX_H_
