#include "server/exit_within.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/support/patience.h"

namespace encoderd {
namespace {

TEST(ExitWithinTest, EndsAProcessThatStillRuns) {
  const auto hang = [] {
    ExitWithin(absl::Milliseconds(10), 7);
    absl::SleepFor(kPatience);
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace encoderd
