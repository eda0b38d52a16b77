// Many schedules of the queue, the same ones everywhere. To run more, or one
// again:
//   ENCODERD_SCHEDULES=1000000 pipeline_simulation_test
//   ENCODERD_SEED=12345 ENCODERD_SCHEDULES=1 pipeline_simulation_test
#include "tests/unit/server/pipeline/simulation.h"

#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"

namespace encoderd {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

TEST(SimulationTest, EverySeededScheduleKeepsThePromises) {
  const uint64_t first = FromEnvironment("ENCODERD_SEED", 1);
  const uint64_t schedules = FromEnvironment("ENCODERD_SCHEDULES", 5000);
  SimulationCounts counts;
  uint64_t done = 0;
  while (done < schedules) {
    const std::string problem = RunSchedule(first + done, &counts);
    ASSERT_EQ(problem, "") << "replay with ENCODERD_SEED=" << first + done
                           << " ENCODERD_SCHEDULES=1";
    ++done;
  }
  RecordProperty("schedules", std::to_string(done));
  std::cout << done << " schedules, " << counts.batches << " batches; "
            << counts.ok << " ok, " << counts.cancelled << " cancelled, "
            << counts.expired << " expired, " << counts.faults << " failed, "
            << counts.unavailable << " unavailable, " << counts.queue_full
            << " refused\n";
  if (done < 1000) return;
  // Every way a request can end was met.
  EXPECT_GT(counts.ok, 0);
  EXPECT_GT(counts.cancelled, 0);
  EXPECT_GT(counts.expired, 0);
  EXPECT_GT(counts.faults, 0);
  EXPECT_GT(counts.unavailable, 0);
  EXPECT_GT(counts.queue_full, 0);
  EXPECT_GT(counts.retried_batches, 0);
  EXPECT_GT(counts.sliced_requests, 0);
  EXPECT_GT(counts.pauses, 0);
}

TEST(SimulationTest, TheSameSeedIsTheSameSchedule) {
  for (uint64_t seed = 1; seed < 50; ++seed) {
    SimulationCounts first;
    SimulationCounts second;
    RunSchedule(seed, &first);
    RunSchedule(seed, &second);
    EXPECT_EQ(first.batches, second.batches);
    EXPECT_EQ(first.ok, second.ok);
    EXPECT_EQ(first.cancelled, second.cancelled);
  }
}

}  // namespace
}  // namespace encoderd
