// Time for intervals, limits and waits, which a step of the wall clock must
// neither stretch nor cut short.
#ifndef ENCODERD_SERVER_BASE_STEADY_TIME_H_
#define ENCODERD_SERVER_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace encoderd {

// The wall time of the first call plus the time since by the system's monotonic
// clock: never goes back, and does not follow a wall clock that is set. What
// leaves the process or comes from outside (lines of the log, spans, the
// validity of certificates) has absl::Now(). Thread-safe.
inline absl::Time SteadyNow() {
  using Clock = std::chrono::steady_clock;
  struct Start {
    absl::Time wall = absl::Now();
    Clock::time_point steady = Clock::now();
  };
  static const Start start;
  return start.wall + absl::FromChrono(Clock::now() - start.steady);
}

}  // namespace encoderd

#endif  // ENCODERD_SERVER_BASE_STEADY_TIME_H_
