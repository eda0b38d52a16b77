// How fast the Sessions compute lately, and for how long a caller that a full
// queue rejects should therefore pause before it retries.
//
// The rule. The pause is half to all of the time in which the waiting tokens
// will be computed, so that those who come back find room and the device is
// never idle meanwhile. That time counts as at least kShortestDrain, also while
// nothing has been computed yet, and as at most kLongestDrain. Successive
// pauses are spread evenly over the range, so that callers rejected together do
// not come back together. Only the last second or so of compute counts, and
// idle time never does. Thread-safe.
#ifndef ENCODERD_SERVER_PIPELINE_QUEUE_PACE_H_
#define ENCODERD_SERVER_PIPELINE_QUEUE_PACE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace encoderd {

class QueuePace {
 public:
  // Of the time in which the queue drains; pauses start at half of it.
  static constexpr absl::Duration kShortestDrain = absl::Milliseconds(200);
  static constexpr absl::Duration kLongestDrain = absl::Seconds(5);

  // A Session computed a batch of `tokens` in `time`.
  void Computed(int64_t tokens, absl::Duration time);
  // For a caller rejected while `tokens` wait for each Session.
  absl::Duration PauseFor(int64_t tokens);

 private:
  Mutex mutex_;
  // Both are sums that fade with every second of compute.
  double tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  double seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t pauses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_QUEUE_PACE_H_
