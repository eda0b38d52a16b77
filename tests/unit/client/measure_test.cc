// What encoderctl bench counts, by a clock that the test moves.
#include "client/cpp/encoderctl/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/error.h"

namespace encoderd::ctl {
namespace {

// Seconds of the test's clock.
absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

MeasureLimits Limits(double warm_up, double duration, int64_t calls = 1000) {
  return {absl::Seconds(warm_up), absl::Seconds(duration), calls};
}

TEST(MeasureTest, CountsWhatEndsInTheWindowWhereverItBegan) {
  Measure measure(Limits(1, 10), At(0));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(measure.Begin(At(0)));
  measure.Answered(At(0), At(0.5), 2, 7);   // in the warm-up
  measure.Answered(At(0), At(2), 2, 7);     // began in the warm-up
  measure.Answered(At(0), At(11.5), 2, 7);  // too late
  const Figures figures = measure.Close(At(12));
  EXPECT_EQ(figures.answered, 1);
  EXPECT_EQ(figures.texts, 2);
  EXPECT_EQ(figures.tokens, 7u);
  EXPECT_EQ(figures.cut_off, 1);
  EXPECT_EQ(figures.measured, absl::Seconds(10));
  EXPECT_DOUBLE_EQ(figures.PerSecond(20), 2);
}

TEST(MeasureTest, KeepsEveryCallerBusyUntilTheLastCallThatIsWantedEnds) {
  Measure measure(Limits(0, 10, 3), At(0));
  EXPECT_TRUE(measure.Begin(At(0)));
  EXPECT_TRUE(measure.Begin(At(0)));
  measure.Answered(At(0), At(1), 1, 1);
  EXPECT_TRUE(measure.Begin(At(1)));
  measure.Failed(At(2), absl::InternalError("x"));
  EXPECT_TRUE(measure.Begin(At(2)));  // one is wanted, and one is in flight
  EXPECT_FALSE(measure.Over(At(3)));
  measure.Answered(At(1), At(4), 1, 1);
  EXPECT_TRUE(measure.Over(At(4)));
  EXPECT_FALSE(measure.Begin(At(4)));
  const Figures figures = measure.Close(At(9));
  EXPECT_EQ(figures.measured, absl::Seconds(4));
  EXPECT_EQ(figures.answered, 2);
  EXPECT_EQ(figures.failed, 1);
  EXPECT_EQ(figures.cut_off, 1);
}

TEST(MeasureTest, HoldsAHundredCallsAndTenRoundsOfTheCallersForEnough) {
  EXPECT_EQ(FewestCalls(1), 100);
  EXPECT_EQ(FewestCalls(10), 100);
  EXPECT_EQ(FewestCalls(64), 640);
}

TEST(MeasureTest, IsOverWhenItsTimeIsUp) {
  Measure measure(Limits(1, 2), At(0));
  EXPECT_FALSE(measure.Over(At(2.9)));
  EXPECT_DOUBLE_EQ(measure.Share(At(0.5)), 0);
  EXPECT_DOUBLE_EQ(measure.Share(At(2)), 0.5);
  EXPECT_TRUE(measure.Over(At(3)));
  EXPECT_FALSE(measure.Begin(At(3)));
}

TEST(MeasureTest, ABreakInTheWarmUpMeasuredNothing) {
  Measure measure(Limits(1, 2), At(0));
  EXPECT_TRUE(measure.Begin(At(0)));
  measure.Answered(At(0), At(0.4), 1, 1);
  const Figures figures = measure.Close(At(0.5));
  EXPECT_EQ(figures.measured, absl::ZeroDuration());
  EXPECT_EQ(figures.PerSecond(1), 0);
  EXPECT_EQ(figures.Quantile(0.5), absl::ZeroDuration());
  EXPECT_EQ(figures.Mean(), absl::ZeroDuration());
}

TEST(MeasureTest, GivesTheLatencyThatAShareOfTheCallsDoesNotExceed) {
  Measure measure(Limits(0, 1000), At(0));
  for (int i = 100; i > 0; --i) {
    EXPECT_TRUE(measure.Begin(At(0)));
    measure.Answered(At(0), At(i), 1, 1);
  }
  const Figures figures = measure.Close(At(200));
  EXPECT_EQ(figures.Quantile(0.5), absl::Seconds(50));
  EXPECT_EQ(figures.Quantile(0.99), absl::Seconds(99));
  EXPECT_EQ(figures.Quantile(1), absl::Seconds(100));
  EXPECT_EQ(figures.Quantile(0), absl::Seconds(1));
  EXPECT_EQ(figures.Mean(), absl::Seconds(50.5));
}

TEST(MeasureTest, CountsFailuresByReasonElseByCode) {
  Measure measure(Limits(0, 10), At(0));
  const absl::Status full = client::MakeError(
      absl::StatusCode::kResourceExhausted, "full", "QUEUE_FULL", {});
  for (const absl::Status& status :
       {full, full, absl::UnavailableError("nobody listens")}) {
    EXPECT_TRUE(measure.Begin(At(0)));
    measure.Failed(At(1), status);
  }
  const Figures figures = measure.Close(At(2));
  EXPECT_EQ(figures.failed, 3);
  EXPECT_EQ(figures.failures.at("QUEUE_FULL").calls, 2);
  EXPECT_EQ(figures.failures.at("QUEUE_FULL").first,
            "RESOURCE_EXHAUSTED (QUEUE_FULL): full");
  EXPECT_EQ(figures.failures.at("UNAVAILABLE").calls, 1);
}

}  // namespace
}  // namespace encoderd::ctl
