// Time and waits that a step of the wall clock neither stretches nor cuts
// short. Internal to the library and its command line.
#ifndef ENCODERD_CLIENT_CPP_STEADY_TIME_H_
#define ENCODERD_CLIENT_CPP_STEADY_TIME_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace encoderd::client {

// The wall time of the first call plus the time since by the system's monotonic
// clock: never goes back, and does not follow a wall clock that is set. For
// intervals and limits; what leaves the process has absl::Now(). Thread-safe.
inline absl::Time SteadyNow() {
  using Clock = std::chrono::steady_clock;
  struct Start {
    absl::Time wall = absl::Now();
    Clock::time_point steady = Clock::now();
  };
  static const Start start;
  return start.wall + absl::FromChrono(Clock::now() - start.steady);
}

// Waits like those of absl::Mutex, which in some versions of Abseil are until a
// wall time. Other than with those, who changes the condition must notify.
class SteadyCondition {
 public:
  // Waits until `condition`, which is called with the mutex held, or for
  // `timeout`. What the condition is then.
  bool Await(absl::Mutex* mu, absl::FunctionRef<bool()> condition,
             absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    const absl::Time until = SteadyNow() + timeout;
    Lock lock{mu};
    while (!condition()) {
      const absl::Duration left = until - SteadyNow();
      if (left <= absl::ZeroDuration()) return false;
      changed_.wait_for(
          lock, absl::ToChronoNanoseconds(std::min(left, kLongestWait)));
    }
    return true;
  }
  // With the mutex held.
  void NotifyAll() { changed_.notify_all(); }

 private:
  // The standard library's clock would overflow at the end of time.
  static constexpr absl::Duration kLongestWait = absl::Hours(1);

  // An absl::Mutex under the standard library's names.
  struct Lock {
    void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu->Lock(); }
    void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu->Unlock(); }
    absl::Mutex* mu;
  };

  std::condition_variable_any changed_;
};

// An absl::Notification whose wait with a timeout is steady. Thread-safe.
class SteadyNotification {
 public:
  SteadyNotification() = default;
  // Who was told of it may destroy it before Notify has returned.
  ~SteadyNotification() { absl::MutexLock lock(&mu_); }

  void Notify() {
    absl::MutexLock lock(&mu_);
    notified_ = true;
    condition_.NotifyAll();
  }
  bool HasBeenNotified() const {
    absl::MutexLock lock(&mu_);
    return notified_;
  }
  void WaitForNotification() {
    WaitForNotificationWithTimeout(absl::InfiniteDuration());
  }
  // Whether it was notified.
  bool WaitForNotificationWithTimeout(absl::Duration timeout) {
    absl::MutexLock lock(&mu_);
    const auto notified = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return notified_;
    };
    return condition_.Await(&mu_, notified, timeout);
  }

 private:
  mutable absl::Mutex mu_;
  SteadyCondition condition_;
  bool notified_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_STEADY_TIME_H_
