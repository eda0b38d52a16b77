#include "server/base/steady_time.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace encoderd {
namespace {

TEST(SteadyTimeTest, StartsAtTheWallTime) {
  const absl::Time before = absl::Now();
  const absl::Time steady = SteadyNow();
  // Far beyond what a loaded machine takes between two lines.
  EXPECT_LT(absl::AbsDuration(steady - before), absl::Minutes(1));
}

TEST(SteadyTimeTest, NeverGoesBack) {
  absl::Time last = SteadyNow();
  for (int i = 0; i < 100000; ++i) {
    const absl::Time now = SteadyNow();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(SteadyTimeTest, CountsTheTimeThatIsSlept) {
  const absl::Time before = SteadyNow();
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_GE(SteadyNow() - before, absl::Milliseconds(20));
}

}  // namespace
}  // namespace encoderd
