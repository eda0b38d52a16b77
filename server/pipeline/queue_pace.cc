#include "server/pipeline/queue_pace.h"

#include <algorithm>
#include <cmath>

namespace encoderd {

void QueuePace::Computed(int64_t tokens, absl::Duration time) {
  // Less than 0 if the clock was set back meanwhile.
  const double seconds = std::max(absl::ToDoubleSeconds(time), 0.0);
  const double keep = std::exp(-seconds);
  MutexLock lock(&mutex_);
  tokens_ = tokens_ * keep + static_cast<double>(tokens);
  seconds_ = seconds_ * keep + seconds;
}

absl::Duration QueuePace::PauseFor(int64_t tokens) {
  double drain = 0;
  uint64_t count = 0;
  {
    MutexLock lock(&mutex_);
    if (tokens_ > 0) drain = static_cast<double>(tokens) * seconds_ / tokens_;
    count = pauses_++;
  }
  drain = std::clamp(drain, absl::ToDoubleSeconds(kShortestDrain),
                     absl::ToDoubleSeconds(kLongestDrain));
  // Multiples of the golden ratio, less their integers, are spread evenly.
  const double spread =
      std::ldexp(static_cast<double>(count * 0x9E3779B97F4A7C15u), -64);
  return absl::Seconds(drain * (1 + std::min(spread, 1.0)) / 2);
}

}  // namespace encoderd
