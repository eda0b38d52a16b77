// Who computes what of an op, and whose cores a pass has.
#include "engine/device/cpu/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "engine/device/cpu/cpu_info.h"
#include "tests/support/patience.h"

namespace encoderd {
namespace cpu {
namespace {

constexpr ScratchBytes kSome = {64, 128, 192};

// A Team with an executor for each core.
class FullTeam : public Team {
 public:
  explicit FullTeam(int32_t cores) : Team(cores) {
    for (int32_t i = 0; i < cores; ++i) Join();
  }
};

// One op of `pass`: how many parts it had.
int32_t PartsOf(Team::Pass* pass, int32_t most) {
  int32_t found = 0;
  ThreadScratch scratch;
  pass->Run(most, scratch,
            [&](int32_t part, int32_t parts, const ThreadScratch&) {
              if (part == 0) found = parts;
            });
  return found;
}

class TeamTest : public ::testing::TestWithParam<int32_t> {};

TEST_P(TeamTest, EveryPartIsComputedOnce) {
  FullTeam team(GetParam());
  Team::Pass pass(&team);
  ThreadScratch scratch;
  for (int round = 0; round < 2000; ++round) {
    const int32_t most = 1 + round % 6;
    std::atomic<int> times[6] = {};
    int32_t found = 0;
    pass.Run(most, scratch,
             [&](int32_t part, int32_t parts, const ThreadScratch&) {
               ++times[part];
               if (part == 0) found = parts;
             });
    ASSERT_EQ(found, std::min(most, GetParam()));
    for (int32_t part = 0; part < 6; ++part) {
      ASSERT_EQ(times[part], part < found ? 1 : 0) << part;
    }
  }
}

TEST_P(TeamTest, ThreadsHaveScratchOfTheirOwn) {
  FullTeam team(GetParam());
  ASSERT_TRUE(team.Reserve(kSome).ok());
  ThreadScratch scratch;
  ASSERT_TRUE(TakeScratch(kSome, &scratch).ok());
  Team::Pass pass(&team);
  std::vector<const void*> seen(GetParam());
  pass.Run(GetParam(), scratch,
           [&](int32_t part, int32_t parts, const ThreadScratch& mine) {
             seen[part] = mine.attention.data();
           });
  EXPECT_EQ(seen[0], scratch.attention.data());
  // A part that the calling thread took back has its scratch.
  EXPECT_EQ(std::set<const void*>(seen.begin(), seen.end()).count(nullptr), 0);
}

INSTANTIATE_TEST_SUITE_P(Cores, TeamTest, ::testing::Values(1, 2, 3, 4));

TEST(TeamPassTest, HasAllCoresWhileItIsAlone) {
  FullTeam team(4);
  Team::Pass pass(&team);
  EXPECT_EQ(PartsOf(&pass, 8), 4);
  EXPECT_EQ(team.lent(), 3);
}

// "More passes and helpers than cores" is seen before the next op.
TEST(TeamPassTest, SharesTheCoresWithEachOtherPass) {
  FullTeam team(4);
  Team::Pass first(&team);
  EXPECT_EQ(PartsOf(&first, 8), 4);
  {
    Team::Pass second(&team);
    EXPECT_EQ(PartsOf(&second, 8), 1);
    EXPECT_EQ(PartsOf(&first, 8), 2);
    EXPECT_EQ(PartsOf(&second, 8), 2);
    Team::Pass third(&team), fourth(&team);
    for (Team::Pass* pass : {&first, &second, &third, &fourth})
      EXPECT_EQ(PartsOf(pass, 8), 1);
    EXPECT_EQ(team.passes() + team.lent(), team.cores());
  }
  EXPECT_EQ(PartsOf(&first, 8), 4);
}

TEST(TeamPassTest, WhatIsTooSmallForHelpLeavesItToOthers) {
  FullTeam team(8);
  Team::Pass one_part(&team), first(&team), second(&team);
  EXPECT_EQ(PartsOf(&one_part, 1), 1);
  EXPECT_EQ(PartsOf(&first, 8), 6);  // as far as is known, it is the only one
  EXPECT_EQ(PartsOf(&second, 8), 1);
  EXPECT_EQ(PartsOf(&first, 8), 4);
  EXPECT_EQ(PartsOf(&second, 8), 3);
  EXPECT_EQ(PartsOf(&one_part, 1), 1);
  EXPECT_EQ(team.passes() + team.lent(), team.cores());
}

TEST(TeamPassTest, MorePassesThanCoresHaveNoHelp) {
  FullTeam team(2);
  Team::Pass passes[3] = {Team::Pass(&team), Team::Pass(&team),
                          Team::Pass(&team)};
  for (Team::Pass& pass : passes) EXPECT_EQ(PartsOf(&pass, 8), 1);
  EXPECT_EQ(team.lent(), 0);
}

// Who asks for one thread, by one Session, has one.
TEST(TeamPassTest, HasNoMoreCoresThanThereAreExecutors) {
  Team team(4);
  team.Join();
  Team::Pass pass(&team);
  EXPECT_EQ(PartsOf(&pass, 8), 1);
  team.Join();
  EXPECT_EQ(PartsOf(&pass, 8), 2);
  team.Leave();
  EXPECT_EQ(PartsOf(&pass, 8), 1);
}

TEST(TeamPassTest, GivesBackWhatItHas) {
  FullTeam team(2);
  { EXPECT_EQ(PartsOf(std::make_unique<Team::Pass>(&team).get(), 2), 2); }
  EXPECT_EQ(team.passes(), 0);
  EXPECT_EQ(team.lent(), 0);
  ASSERT_TRUE(team.Reserve(kSome).ok());  // waits for helpers that are lent
}

// Passes of four threads on a team of two: each part once, whoever helps.
TEST(TeamPassTest, PassesSideBySideDoNotMeet) {
  FullTeam team(2);
  ASSERT_TRUE(team.Reserve(kSome).ok());
  std::atomic<int> faults = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      ThreadScratch scratch;
      for (int round = 0; round < 500; ++round) {
        Team::Pass pass(&team);
        for (int op = 0; op < 3; ++op) {
          std::atomic<int> sum = 0;
          int32_t found = 0;
          pass.Run(2, scratch,
                   [&](int32_t part, int32_t parts, const ThreadScratch&) {
                     sum += part + 1;
                     if (part == 0) found = parts;
                   });
          if (sum != (found == 2 ? 3 : 1)) ++faults;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(team.lent(), 0);
}

TEST(SharedTeamTest, IsOneForTheProcessWhileOneHasIt) {
  const std::shared_ptr<Team> team = SharedTeam();
  EXPECT_EQ(team, SharedTeam());
  for (int32_t i = 0; i < 1000; ++i) team->Join();
  EXPECT_EQ(team->cores(), AvailableCores());
  for (int32_t i = 0; i < 1000; ++i) team->Leave();
}

TEST(TeamScratchTest, NamesWhatItCannotHave) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the program instead";
#endif
  FullTeam team(2);
  const absl::Status status = team.Reserve({64, int64_t{1} << 60, 64});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("attention scratch"), std::string::npos)
      << status;
  EXPECT_TRUE(team.Reserve(kSome).ok());
}

TEST(TeamScratchTest, HelpersKeepWhatTheyHaveIfMoreCannotBeHad) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the program instead";
#endif
  FullTeam team(2);
  ASSERT_TRUE(team.Reserve(kSome).ok());
  EXPECT_FALSE(team.Reserve({64, int64_t{1} << 60, 64}).ok());
  Team::Pass pass(&team);
  ThreadScratch scratch;
  std::atomic<bool> helped{false};
  EXPECT_TRUE(GivenEnoughTime([&](absl::Duration time) {
    pass.Run(2, scratch,
             [&](int32_t part, int32_t parts, const ThreadScratch& mine) {
               if (&mine != &scratch) {
                 EXPECT_NE(mine.attention.data(), nullptr);
                 helped = true;
               } else if (part == 0) {  // a helper that is late has no part
                 const absl::Time until = absl::Now() + time;
                 while (!helped && absl::Now() < until)
                   absl::SleepFor(absl::Milliseconds(1));
               }
             });
    return helped.load();
  }));
}

}  // namespace
}  // namespace cpu
}  // namespace encoderd
