// How tests wait: for a state, never for a time that must be enough.
//
// A machine under load may let a thread stand for seconds. What must happen is
// waited for, as long as only a hang could take; what must happen before some
// time is up gets more time until it did.
#ifndef ENCODERD_TESTS_SUPPORT_PATIENCE_H_
#define ENCODERD_TESTS_SUPPORT_PATIENCE_H_

#include <chrono>
#include <cstdlib>
#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace encoderd {

// Also the deadline of calls that are to be answered.
constexpr absl::Duration kPatience = absl::Seconds(60);

// True as soon as `condition` holds; false when it did not within kPatience.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto until =
      std::chrono::steady_clock::now() + absl::ToChronoSeconds(kPatience);
  do {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(2));
  } while (std::chrono::steady_clock::now() < until);
  return condition();
}

// Calls `attempt` with 1/4 s, 1/2 s, 1 s, ... until it is true: so it was in
// time. False: 32 s did not do either. An attempt that is wrong for another
// reason than its time fails the test itself.
inline bool GivenEnoughTime(
    const std::function<bool(absl::Duration time)>& attempt) {
  for (absl::Duration time = absl::Milliseconds(250); time <= absl::Seconds(32);
       time *= 2) {
    if (attempt(time)) return true;
  }
  return false;
}

// How often to try what is random: `few` times for each change, as often as
// ENCODERD_TEST_ROUNDS says at night.
inline int Rounds(int few) {
  const char* const said = std::getenv("ENCODERD_TEST_ROUNDS");
  return said == nullptr ? few : std::atoi(said);
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_PATIENCE_H_
