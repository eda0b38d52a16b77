// Who computes what of an op, and whose cores a pass has.
#include "engine/device/cpu/team.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/device/cpu/cpu_info.h"
#include "server/base/steady_time.h"
#include "tests/support/patience.h"

namespace encoderd {
namespace cpu {
namespace {

constexpr int64_t kSome = 192;
constexpr int64_t kTooMuch = int64_t{1} << 60;

// A Team with an executor for each core.
class FullTeam : public Team {
 public:
  explicit FullTeam(int32_t cores) : Team(cores) {
    for (int32_t i = 0; i < cores; ++i) Join();
  }
};

// One op of `pass`: how many threads it had.
int32_t ThreadsOf(Team::Pass* pass, int32_t most) {
  const int32_t threads = pass->Threads(most);
  pass->Run(threads, 1, nullptr, [&](const Team::Slice& slice, void*) {
    EXPECT_EQ(slice.parts, threads);
  });
  return threads;
}

class TeamTest : public ::testing::TestWithParam<int32_t> {};

TEST_P(TeamTest, EverySliceIsComputedOnce) {
  FullTeam team(GetParam());
  Team::Pass pass(&team);
  for (int round = 0; round < 2000; ++round) {
    const int32_t most = 1 + round % 6, slices = 1 + round % 5;
    std::atomic<int> times[6][5] = {};
    const int32_t parts = pass.Threads(most);
    ASSERT_EQ(parts, std::min(most, GetParam()));
    pass.Run(parts, slices, nullptr, [&](const Team::Slice& slice, void*) {
      ++times[slice.part][slice.index];
      EXPECT_EQ(slice.parts, parts);
      EXPECT_EQ(slice.count, slices);
    });
    for (int32_t part = 0; part < 6; ++part) {
      for (int32_t slice = 0; slice < 5; ++slice) {
        const bool is_one = part < parts && slice < slices;
        ASSERT_EQ(times[part][slice], is_one ? 1 : 0) << part << ", " << slice;
      }
    }
  }
}

// `body` on each of the pass's threads: no thread takes the part of another.
void RunOnEach(int threads, Team::Pass* pass,
               const std::function<void()>& body) {
  std::atomic<int> running = 0;
  ASSERT_EQ(pass->Threads(threads), threads);
  pass->Run(threads, 1, nullptr, [&](const Team::Slice&, void*) {
    ++running;
    EXPECT_TRUE(Eventually([&] { return running == threads; }));
    body();
  });
}

TEST(TeamSleepTest, ASleepingHelperIsWokenUp) {
  FullTeam team(3);
  Team::Pass pass(&team);
  for (int round = 0; round < 20; ++round) {
    absl::SleepFor(absl::Milliseconds(round % 3));
    RunOnEach(3, &pass, [] {});
  }
}

// Otherwise `top -H` shows the name of the thread that made the Team.
TEST(TeamNamesTest, ItsThreadsHaveNames) {
  FullTeam team(3);
  Team::Pass pass(&team);
  std::mutex mutex;
  std::set<std::string> names;
  pthread_setname_np(pthread_self(), "of-the-pass");
  RunOnEach(3, &pass, [&] {
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof(name));
    const std::lock_guard<std::mutex> lock(mutex);
    names.insert(name);
  });
  EXPECT_EQ(names, (std::set<std::string>{"of-the-pass", "team-1", "team-2"}));
}

// A pass of more parts than one thread looks at for what is left.
TEST(TeamSliceTest, EverySliceOfManyPartsIsComputedOnce) {
  constexpr int32_t kParts = 20, kSlices = 3;
  FullTeam team(kParts);
  Team::Pass pass(&team);
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(pass.Threads(kParts), kParts);
    std::atomic<int> times[kParts][kSlices] = {};
    pass.Run(kParts, kSlices, nullptr, [&](const Team::Slice& slice, void*) {
      ++times[slice.part][slice.index];
    });
    for (const auto& part : times) {
      for (const std::atomic<int>& slice : part) ASSERT_EQ(slice, 1);
    }
  }
}

// On a team of two or three, the first thread that begins a slice, and is or is
// not the calling one, gets no further until all others are done.
class SlowThreadTest : public ::testing::TestWithParam<int32_t> {
 protected:
  static void ExpectOthersCompute(bool caller_is_slow) {
    constexpr int kSlices = 4;
    const int32_t threads = GetParam();
    FullTeam team(threads);
    Team::Pass pass(&team);
    int of_caller = 0;
    EXPECT_TRUE(GivenEnoughTime([&](absl::Duration time) {
      const absl::Time until = SteadyNow() + time;
      const auto wait_for = [&](absl::FunctionRef<bool()> what) {
        while (!what() && SteadyNow() < until)
          absl::SleepFor(absl::Milliseconds(1));
        return what();
      };
      std::atomic<int> done = 0;
      std::atomic<bool> begun = false, was_slow = false;
      pass.Run(pass.Threads(threads), kSlices, &of_caller,
               [&](const Team::Slice&, const void* scratch) {
                 const bool is_caller = scratch == &of_caller;
                 if (is_caller == caller_is_slow && !begun.exchange(true)) {
                   was_slow =
                       wait_for([&] { return done == threads * kSlices - 1; });
                 } else if (is_caller) {
                   wait_for([&] { return begun.load(); });
                 }
                 ++done;
               });
      return was_slow.load();
    }));
  }
};

TEST_P(SlowThreadTest, OthersTakeWhatAHelperHasNotBegun) {
  ExpectOthersCompute(false);
}

TEST_P(SlowThreadTest, HelpersTakeWhatTheCallerHasNotBegun) {
  ExpectOthersCompute(true);
}

INSTANTIATE_TEST_SUITE_P(Threads, SlowThreadTest, ::testing::Values(2, 3));

TEST_P(TeamTest, ThreadsHaveSeparateScratch) {
  FullTeam team(GetParam());
  ASSERT_TRUE(team.Reserve(kSome).ok());
  int of_caller = 0;
  Team::Pass pass(&team);
  std::mutex mu;
  std::map<std::thread::id, const void*> seen;
  for (int round = 0; round < 100; ++round) {
    pass.Run(pass.Threads(GetParam()), 3, &of_caller,
             [&](const Team::Slice&, const void* scratch) {
               const std::lock_guard<std::mutex> lock(mu);
               const auto [it, is_new] =
                   seen.try_emplace(std::this_thread::get_id(), scratch);
               EXPECT_EQ(it->second, scratch);
             });
  }
  EXPECT_EQ(seen[std::this_thread::get_id()], &of_caller);
  std::set<const void*> different;
  for (const auto& [id, memory] : seen) different.insert(memory);
  EXPECT_EQ(different.size(), seen.size());
  EXPECT_EQ(different.count(nullptr), 0);
}

INSTANTIATE_TEST_SUITE_P(Cores, TeamTest, ::testing::Values(1, 2, 3, 4));

TEST(TeamPassTest, HasAllCoresWhileItIsAlone) {
  FullTeam team(4);
  Team::Pass pass(&team);
  EXPECT_EQ(ThreadsOf(&pass, 8), 4);
  EXPECT_EQ(team.lent(), 3);
}

// "More passes and helpers than cores" is seen before the next op.
TEST(TeamPassTest, SharesTheCoresWithEachOtherPass) {
  FullTeam team(4);
  Team::Pass first(&team);
  EXPECT_EQ(ThreadsOf(&first, 8), 4);
  {
    Team::Pass second(&team);
    EXPECT_EQ(ThreadsOf(&second, 8), 1);
    EXPECT_EQ(ThreadsOf(&first, 8), 2);
    EXPECT_EQ(ThreadsOf(&second, 8), 2);
    Team::Pass third(&team), fourth(&team);
    for (Team::Pass* pass : {&first, &second, &third, &fourth})
      EXPECT_EQ(ThreadsOf(pass, 8), 1);
    EXPECT_EQ(team.passes() + team.lent(), team.cores());
  }
  EXPECT_EQ(ThreadsOf(&first, 8), 4);
}

TEST(TeamPassTest, WhatIsTooSmallForHelpLeavesItToOthers) {
  FullTeam team(8);
  Team::Pass one_part(&team), first(&team), second(&team);
  EXPECT_EQ(ThreadsOf(&one_part, 1), 1);
  EXPECT_EQ(ThreadsOf(&first, 8), 6);  // as far as is known, it is the only one
  EXPECT_EQ(ThreadsOf(&second, 8), 1);
  EXPECT_EQ(ThreadsOf(&first, 8), 4);
  EXPECT_EQ(ThreadsOf(&second, 8), 3);
  EXPECT_EQ(ThreadsOf(&one_part, 1), 1);
  EXPECT_EQ(team.passes() + team.lent(), team.cores());
}

TEST(TeamPassTest, MorePassesThanCoresHaveNoHelp) {
  FullTeam team(2);
  Team::Pass passes[3] = {Team::Pass(&team), Team::Pass(&team),
                          Team::Pass(&team)};
  for (Team::Pass& pass : passes) EXPECT_EQ(ThreadsOf(&pass, 8), 1);
  EXPECT_EQ(team.lent(), 0);
}

// Who asks for one thread, by one Session, has one.
TEST(TeamPassTest, HasNoMoreCoresThanThereAreExecutors) {
  Team team(4);
  team.Join();
  Team::Pass pass(&team);
  EXPECT_EQ(ThreadsOf(&pass, 8), 1);
  team.Join();
  EXPECT_EQ(ThreadsOf(&pass, 8), 2);
  team.Leave();
  EXPECT_EQ(ThreadsOf(&pass, 8), 1);
}

TEST(TeamPassTest, GivesBackWhatItHas) {
  FullTeam team(2);
  { EXPECT_EQ(ThreadsOf(std::make_unique<Team::Pass>(&team).get(), 2), 2); }
  EXPECT_EQ(team.passes(), 0);
  EXPECT_EQ(team.lent(), 0);
  EXPECT_TRUE(team.Reserve(kSome).ok());
}

// Memory of a helper that may be using it stays as it is.
TEST(TeamPassTest, ReserveWaitsForHelpersThatAreLent) {
  FullTeam team(2);
  std::atomic<bool> begun = false, reserved = false;
  std::thread thread;
  {
    Team::Pass pass(&team);
    ASSERT_EQ(ThreadsOf(&pass, 2), 2);
    thread = std::thread([&] {
      begun = true;
      EXPECT_TRUE(team.Reserve(kSome).ok());
      reserved = true;
    });
    EXPECT_TRUE(Eventually([&] { return begun.load(); }));
    absl::SleepFor(absl::Milliseconds(20));
    EXPECT_FALSE(reserved);
  }
  thread.join();
  EXPECT_TRUE(reserved);
}

// Passes of four threads on a team of two: each part once, whoever helps.
TEST(TeamPassTest, PassesSideBySideDoNotMeet) {
  FullTeam team(2);
  ASSERT_TRUE(team.Reserve(kSome).ok());
  std::atomic<int> faults = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        Team::Pass pass(&team);
        for (int op = 0; op < 3; ++op) {
          std::atomic<int> sum = 0;
          const int32_t parts = pass.Threads(2);
          pass.Run(parts, 2, nullptr, [&](const Team::Slice& slice, void*) {
            sum += 1 + 10 * slice.part + 100 * slice.index;
          });
          if (sum != (parts == 2 ? 224 : 102)) ++faults;
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
  const absl::Status status = team.Reserve(kTooMuch);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            absl::StrCat("no memory for ", kTooMuch, " bytes of scratch"));
  EXPECT_TRUE(team.Reserve(kSome).ok());
}

TEST(TeamScratchTest, HelpersKeepWhatTheyHaveIfMoreCannotBeHad) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the program instead";
#endif
  FullTeam team(2);
  ASSERT_TRUE(team.Reserve(kSome).ok());
  EXPECT_FALSE(team.Reserve(kTooMuch).ok());
  Team::Pass pass(&team);
  int of_caller = 0;
  std::atomic<bool> helped{false};
  EXPECT_TRUE(GivenEnoughTime([&](absl::Duration time) {
    pass.Run(
        pass.Threads(2), 1, &of_caller,
        [&](const Team::Slice& slice, const void* scratch) {
          if (scratch != &of_caller) {
            EXPECT_NE(scratch, nullptr);
            helped = true;
          } else if (slice.part == 0) {  // a helper that is late has no part
            const absl::Time until = SteadyNow() + time;
            while (!helped && SteadyNow() < until)
              absl::SleepFor(absl::Milliseconds(1));
          }
        });
    return helped.load();
  }));
}

}  // namespace
}  // namespace cpu
}  // namespace encoderd
