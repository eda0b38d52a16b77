#include "server/pipeline/queue_pace.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace encoderd {
namespace {

// That a pause is half to all of this.
void ExpectDrain(absl::Duration drain, absl::Duration pause) {
  const absl::Duration rounding = absl::Nanoseconds(10);
  EXPECT_GE(pause, drain / 2 - rounding);
  EXPECT_LE(pause, drain + rounding);
}

TEST(QueuePaceTest, PausesHalfToAllOfTheTimeInWhichTheQueueDrains) {
  QueuePace pace;
  pace.Computed(1000, absl::Milliseconds(500));
  for (int i = 0; i < 100; ++i) {
    ExpectDrain(absl::Seconds(2), pace.PauseFor(4000));
  }
}

TEST(QueuePaceTest, HasALimitAtBothEnds) {
  QueuePace pace;
  ExpectDrain(QueuePace::kShortestDrain, pace.PauseFor(1 << 20));
  pace.Computed(1000, absl::Seconds(1));
  ExpectDrain(QueuePace::kShortestDrain, pace.PauseFor(1));
  ExpectDrain(QueuePace::kLongestDrain, pace.PauseFor(1 << 20));
}

TEST(QueuePaceTest, WorksWithBatchesThatTakeNoTime) {
  QueuePace pace;
  pace.Computed(1000, absl::ZeroDuration());
  ExpectDrain(QueuePace::kShortestDrain, pace.PauseFor(1 << 20));
}

TEST(QueuePaceTest, WorksWithAClockThatIsSetBack) {
  QueuePace pace;
  pace.Computed(1000, absl::Seconds(1));
  pace.Computed(1000, -absl::Hours(1));
  ExpectDrain(absl::Seconds(2), pace.PauseFor(4000));
}

TEST(QueuePaceTest, SmallBatchesCountByTheirTime) {
  QueuePace pace;
  for (int i = 0; i < 100; ++i) pace.Computed(10, absl::Milliseconds(1));
  pace.Computed(100000, absl::Milliseconds(900));
  // 0.94 s for 100,400 tokens or so: more than half of the small ones faded.
  const absl::Duration pause = pace.PauseFor(200000);
  EXPECT_GE(pause, absl::Milliseconds(900));
  EXPECT_LE(pause, absl::Milliseconds(2000));
}

TEST(QueuePaceTest, ForgetsWhatItComputedLongAgo) {
  QueuePace pace;
  pace.Computed(10, absl::Seconds(1));
  for (int i = 0; i < 20; ++i) pace.Computed(1000, absl::Seconds(1));
  ExpectDrain(absl::Milliseconds(2000), pace.PauseFor(2000));
}

TEST(QueuePaceTest, SpreadsThePausesOfCallersRejectedTogether) {
  QueuePace pace;
  pace.Computed(1000, absl::Seconds(1));
  std::vector<absl::Duration> pauses;
  for (int i = 0; i < 100; ++i) pauses.push_back(pace.PauseFor(4000));
  std::sort(pauses.begin(), pauses.end());
  for (size_t i = 1; i < pauses.size(); ++i) {
    // 20 ms apart if they were perfectly even.
    EXPECT_GT(pauses[i] - pauses[i - 1], absl::Milliseconds(5));
    EXPECT_LT(pauses[i] - pauses[i - 1], absl::Milliseconds(60));
  }
}

}  // namespace
}  // namespace encoderd
