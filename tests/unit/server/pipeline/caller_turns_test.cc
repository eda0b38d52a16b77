#include "server/pipeline/caller_turns.h"

#include <cstdint>
#include <map>

#include "gtest/gtest.h"

namespace encoderd {
namespace {

constexpr int64_t kShare = 100;
constexpr int64_t kLead = 300;

// Gives `tokens` to whoever has the turn, `times` times; what each had.
std::map<uint64_t, int64_t> Give(CallerTurns* turns, int64_t tokens,
                                 int times) {
  std::map<uint64_t, int64_t> had;
  for (int i = 0; i < times; ++i) {
    const uint64_t caller = turns->Turn();
    turns->Gave(caller, tokens);
    had[caller] += tokens;
  }
  return had;
}

TEST(CallerTurnsTest, KeepsATurnForItsShareThenGoesToWhoHadLeast) {
  CallerTurns turns(kShare, kLead);
  turns.Enter(1);
  turns.Enter(2);
  turns.Enter(3);
  EXPECT_EQ(turns.Turn(), 1u);
  turns.Gave(1, 60);
  EXPECT_EQ(turns.Turn(), 1u);
  turns.Gave(1, 60);
  EXPECT_EQ(turns.Turn(), 2u);
  turns.Gave(2, 300);  // more than its share: it waits the longer
  EXPECT_EQ(Give(&turns, 50, 6),
            (std::map<uint64_t, int64_t>{{1, 100}, {3, 200}}));
}

TEST(CallerTurnsTest, ARareCallerGoesFirst) {
  CallerTurns turns(kShare, kLead);
  for (uint64_t flood = 1; flood <= 16; ++flood) turns.Enter(flood);
  Give(&turns, 50, 1000);
  turns.Enter(99);
  // After the turn that is in flight and those who are behind.
  const auto had = Give(&turns, 50, 40);
  EXPECT_GE(had.count(99), 1u);
}

TEST(CallerTurnsTest, WhoComesAgainAndAgainGainsNothing) {
  CallerTurns turns(kShare, kLead);
  turns.Enter(1);
  turns.Enter(2);
  std::map<uint64_t, int64_t> had;
  for (int i = 0; i < 10000; ++i) {
    const uint64_t caller = turns.Turn();
    turns.Gave(caller, 30);
    had[caller] += 30;
    if (caller == 2) {
      turns.Leave(2);
      turns.Enter(2);
    }
  }
  EXPECT_NEAR(had[1], had[2], 2 * kShare);
}

TEST(CallerTurnsTest, NewCallersWithoutEndPassAnOldOneForABoundedTime) {
  CallerTurns turns(kShare, kLead);
  turns.Enter(1);
  Give(&turns, 50, 3);  // it is ahead by a turn and a half
  int64_t passed = 0;
  for (uint64_t fresh = 2; fresh < 1000; ++fresh) {
    turns.Enter(fresh);
    turns.SetHasSmall(fresh, true);
    const uint64_t small = turns.SmallTurn().value_or(0);
    const uint64_t caller = small != 0 ? small : turns.Turn();
    if (caller == 1) break;
    turns.Gave(caller, 10);
    turns.Leave(caller);
    passed += 10;
  }
  EXPECT_LE(passed, 2 * (kLead + kShare));  // two wait at a time
}

TEST(CallerTurnsTest, SmallOnesGoBeforeTheirTurnUntilTheyLeadByTooMuch) {
  CallerTurns turns(kShare, kLead);
  turns.Enter(1);
  turns.Enter(2);
  EXPECT_FALSE(turns.SmallTurn().has_value());
  turns.SetHasSmall(2, true);
  int64_t had = 0;
  while (turns.SmallTurn() == 2u) {
    turns.Gave(2, 20);
    had += 20;
    ASSERT_LE(had, 1000);
  }
  EXPECT_EQ(had, kLead + 20);
  EXPECT_EQ(turns.Turn(), 1u);
  turns.Gave(1, kShare);
  EXPECT_EQ(turns.SmallTurn(), 2u);  // the least is not as far behind
  turns.SetHasSmall(2, false);
  EXPECT_FALSE(turns.SmallTurn().has_value());
}

TEST(CallerTurnsTest, WhoHasTheTurnMayHaveSomethingSmallToo) {
  CallerTurns turns(kShare, kLead);
  turns.Enter(1);
  turns.Enter(2);
  EXPECT_EQ(turns.Turn(), 1u);
  turns.SetHasSmall(1, true);
  EXPECT_EQ(turns.SmallTurn(), 1u);
  turns.Gave(1, 50);
  turns.SetHasSmall(2, true);
  EXPECT_EQ(turns.SmallTurn(), 2u);
  turns.Leave(1);
  turns.Leave(2);
  EXPECT_FALSE(turns.SmallTurn().has_value());
}

TEST(CallerTurnsTest, ForgetsCallersThatLeftLongAgo) {
  CallerTurns turns(kShare, kLead);
  turns.Enter(1);
  for (uint64_t once = 2; once < 5000; ++once) {
    turns.Enter(once);
    turns.Gave(once, 10);
    turns.Leave(once);
    turns.Gave(turns.Turn(), 10);
    ASSERT_LE(turns.remembered(), 20u);
  }
}

}  // namespace
}  // namespace encoderd
