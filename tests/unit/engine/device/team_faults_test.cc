// A Team where memory or threads run out: less help, and nothing else.
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <optional>

#include "engine/device/cpu/team.h"
#include "tests/support/faults.h"

namespace encoderd {
namespace cpu {
namespace {

constexpr int32_t kCores = 4;

// What a pass over all cores may have of helpers, with itself. Each slice is
// computed once.
int32_t ThreadsOf(Team* team) {
  for (int32_t i = 0; i < kCores; ++i) team->Join();
  Team::Pass pass(team);
  const int32_t parts = pass.Threads(kCores);
  std::atomic<int> slices = 0;
  pass.Run(parts, 3, nullptr, [&](const Team::Slice&, void*) { ++slices; });
  EXPECT_EQ(slices, 3 * parts);
  return parts;
}

TEST(TeamFaultsTest, HasFewerHelpersWhereNoMoreThreadsStart) {
  std::optional<Team> team;
  {
    const ScopedFault fault(FaultPoint::kThread, {.error = EAGAIN, .after = 1});
    team.emplace(kCores);
  }
  EXPECT_EQ(ThreadsOf(&*team), 2);
}

// Wherever it fails, for as long as it can.
TEST(TeamFaultsTest, HasFewerHelpersWhereMemoryRunsOut) {
  int32_t most = 0;
  for (int after = 0; most < kCores; ++after) {
    ASSERT_LT(after, 1000);
    std::optional<Team> team;
    {
      const ScopedFault fault(FaultPoint::kAllocation,
                              {.after = after, .may_miss = true});
      try {
        team.emplace(kCores);
      } catch (const std::bad_alloc&) {
        continue;  // before the first thread
      }
    }
    const int32_t threads = ThreadsOf(&*team);
    EXPECT_GE(threads, most);
    most = threads;
  }
}

TEST(TeamFaultsTest, APassThatThereIsNoMemoryForTakesNoCores) {
  Team team(kCores);
  for (int32_t i = 0; i < kCores; ++i) team.Join();
  {
    const ScopedFault fault(FaultPoint::kAllocation, {});
    EXPECT_THROW(Team::Pass{&team}, std::bad_alloc);
  }
  {
    Team::Pass pass(&team);
    const ScopedFault fault(FaultPoint::kAllocation, {.may_miss = true});
    EXPECT_EQ(pass.Threads(kCores), kCores);
    EXPECT_EQ(fault.meant(), 0);  // it takes helpers without memory
  }
  EXPECT_EQ(team.passes(), 0);
  EXPECT_EQ(team.lent(), 0);
  EXPECT_TRUE(team.Reserve(64).ok());
}

}  // namespace
}  // namespace cpu
}  // namespace encoderd
