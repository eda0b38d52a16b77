#include "server/pipeline/batch_policy.h"

#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr absl::Time kNever = absl::InfiniteFuture();
const absl::Time kNow = absl::FromUnixSeconds(1000);

MATCHER_P3(SliceOf, request, first, count, "") {
  *result_listener << "request " << arg.request << " " << arg.first << "+"
                   << arg.count;
  return arg.request == static_cast<uint64_t>(request) && arg.first == first &&
         arg.count == count;
}

std::vector<int32_t> Lengths(int count, int32_t length) {
  return std::vector<int32_t>(count, length);
}

// One Session that takes whatever fits.
BatchLimits Greedy(int64_t max_tokens) {
  BatchLimits limits;
  limits.max_tokens = max_tokens;
  limits.min_tokens = max_tokens;
  return limits;
}

BatchLimits Among(int sessions, int idle) {
  BatchLimits limits;
  limits.max_tokens = 4096;
  limits.sessions = sessions;
  limits.idle_sessions = idle;
  return limits;
}

TEST(BatchPolicyTest, GivesAtOnceWhatWaitsHoweverLittle) {
  BatchPolicy policy({100, 100});
  policy.Add(1, 0, kNever, {7});
  const BatchDecision decision = policy.Next(Greedy(1000), kNow);
  EXPECT_THAT(decision.slices, ElementsAre(SliceOf(1, 0, 1)));
  EXPECT_EQ(decision.tokens, 7);
  EXPECT_TRUE(policy.empty());
  EXPECT_THAT(policy.Next(Greedy(1000), kNow).slices, IsEmpty());
}

TEST(BatchPolicyTest, ServesSmallRequestsWholeAndOldestFirst) {
  BatchPolicy policy({100, 100});
  for (int i = 1; i <= 4; ++i) policy.Add(i, 0, kNever, Lengths(3, 10));
  EXPECT_THAT(
      policy.Next(Greedy(70), kNow).slices,
      ElementsAre(SliceOf(1, 0, 3), SliceOf(2, 0, 3), SliceOf(3, 0, 1)));
  EXPECT_THAT(policy.Next(Greedy(70), kNow).slices,
              ElementsAre(SliceOf(3, 1, 2), SliceOf(4, 0, 3)));
}

TEST(BatchPolicyTest, SlicesALongRequestAndLetsAShortOneThroughAfterItsTurn) {
  BatchPolicy policy({1000, 40});
  policy.Add(1, 0, kNever, Lengths(100, 10));
  policy.Add(2, 0, kNever, {10});
  EXPECT_THAT(policy.Next(Greedy(40), kNow).slices,
              ElementsAre(SliceOf(1, 0, 4)));
  EXPECT_THAT(policy.Next(Greedy(40), kNow).slices,
              ElementsAre(SliceOf(2, 0, 1), SliceOf(1, 4, 3)));
}

TEST(BatchPolicyTest, ServesANewcomerInTheNextBatchWhateverAnotherHasQueued) {
  BatchPolicy policy({32, 128});
  for (int i = 0; i < 1000; ++i) policy.Add(i, 7, kNever, Lengths(10, 8));
  policy.Next(Greedy(128), kNow);
  policy.Add(5000, 8, kNever, Lengths(2, 8));
  const BatchDecision decision = policy.Next(Greedy(128), kNow);
  bool served = false;
  for (const RequestSlice& slice : decision.slices)
    served |= slice.request == 5000;
  EXPECT_TRUE(served);
}

TEST(BatchPolicyTest, GivesEqualCallersEqualTokensWhateverTheirShapes) {
  BatchPolicy policy({32, 128});
  policy.Add(1, 1, kNever, Lengths(20000, 3));  // one huge request
  for (int i = 0; i < 5000; ++i) policy.Add(10 + i, 2, kNever, {11, 2});
  policy.Add(2, 3, kNever, Lengths(2000, 29));
  std::map<int, int64_t> tokens;
  for (int batch = 0; batch < 100; ++batch) {
    for (const RequestSlice& slice : policy.Next(Greedy(128), kNow).slices) {
      for (int32_t i = slice.first; i < slice.first + slice.count; ++i) {
        if (slice.request == 1) tokens[1] += 3;
        if (slice.request == 2) tokens[3] += 29;
        if (slice.request >= 10) tokens[2] += i == 0 ? 11 : 2;
      }
    }
  }
  // Shares differ by a turn and one input at most.
  EXPECT_NEAR(tokens[1], tokens[2], 32 + 29);
  EXPECT_NEAR(tokens[2], tokens[3], 32 + 29);
}

TEST(BatchPolicyTest, NeverExceedsTheTokensOfABatch) {
  BatchPolicy policy({64, 64});
  policy.Add(1, 0, kNever, {50, 50, 14, 50, 1});
  EXPECT_EQ(policy.Next(Greedy(64), kNow).tokens, 50);
  EXPECT_EQ(policy.Next(Greedy(64), kNow).tokens, 64);
  EXPECT_EQ(policy.Next(Greedy(64), kNow).tokens, 51);
}

TEST(BatchPolicyTest, SplitsWhatWaitsEvenlyOverIdleSessions) {
  BatchPolicy policy({1024, 4096});
  policy.Add(1, 0, kNever, Lengths(64, 20));
  BatchLimits limits = Among(2, 2);
  limits.min_tokens = 2000;
  EXPECT_EQ(policy.Next(limits, kNow).tokens, 640);
  limits.idle_sessions = 1;
  EXPECT_EQ(policy.Next(limits, kNow).tokens, 640);
}

TEST(BatchPolicyTest, AnIdleSessionGetsNoLessThanIsWorthwhile) {
  BatchPolicy policy({1024, 4096});
  policy.Add(1, 0, kNever, Lengths(64, 20));
  BatchLimits limits = Among(64, 64);
  limits.min_idle_tokens = 128;
  std::vector<int64_t> batches;
  for (; !policy.empty(); --limits.idle_sessions)
    batches.push_back(policy.Next(limits, kNow).tokens);
  EXPECT_THAT(batches, ElementsAre(120, 120, 120, 120, 120, 120, 120, 120, 120,
                                   120, 80));
}

TEST(BatchPolicyTest, WhereHalfAreBusyAnIdleSessionGetsItsEqualPart) {
  BatchPolicy policy({1024, 4096});
  policy.Add(1, 0, kNever, Lengths(4, 40));
  BatchLimits limits = Among(8, 4);
  limits.min_idle_tokens = 128;
  EXPECT_EQ(policy.Next(limits, kNow).tokens, 40);
}

TEST(BatchPolicyTest, LeavesHalfToABusySessionUnlessThatIsTooLittle) {
  BatchPolicy policy({1024, 4096});
  policy.Add(1, 0, kNever, Lengths(80, 10));
  BatchLimits limits = Among(2, 1);
  limits.min_tokens = 150;
  EXPECT_EQ(policy.Next(limits, kNow).tokens, 400);
  EXPECT_EQ(policy.Next(limits, kNow).tokens, 200);
  EXPECT_EQ(policy.Next(limits, kNow).tokens, 150);
  EXPECT_EQ(policy.Next(limits, kNow).tokens, 50);
}

TEST(BatchPolicyTest, ExpiredRequestsLeaveBeforeAnythingIsPicked) {
  BatchPolicy policy({100, 100});
  policy.Add(1, 0, kNow, Lengths(2, 5));
  policy.Add(2, 0, kNow + absl::Nanoseconds(1), Lengths(3, 5));
  policy.Add(3, 1, kNow - absl::Seconds(1), Lengths(4, 5));
  const BatchDecision decision = policy.Next(Greedy(100), kNow);
  EXPECT_THAT(decision.expired, ElementsAre(Pair(3, 4), Pair(1, 2)));
  EXPECT_THAT(decision.slices, ElementsAre(SliceOf(2, 0, 3)));
  EXPECT_TRUE(policy.empty());
}

TEST(BatchPolicyTest, ALaterDeadlineTakesTheEarlierOnesPlace) {
  BatchPolicy policy({100, 100});
  policy.Add(1, 0, kNow, Lengths(2, 5));
  policy.Add(2, 0, kNow, Lengths(2, 5));
  policy.Add(3, 0, kNever, Lengths(2, 5));
  policy.SetDeadline(1, kNever);
  policy.SetDeadline(2, kNow + absl::Nanoseconds(1));
  policy.SetDeadline(3, kNow);
  policy.SetDeadline(77, kNow);
  const BatchDecision decision = policy.Next(Greedy(15), kNow);
  EXPECT_THAT(decision.expired, ElementsAre(Pair(3, 2)));
  EXPECT_THAT(decision.slices, ElementsAre(SliceOf(1, 0, 2), SliceOf(2, 0, 1)));
  EXPECT_THAT(policy.Next(Greedy(100), kNow + absl::Seconds(1)).expired,
              ElementsAre(Pair(2, 1)));
  EXPECT_TRUE(policy.empty());
}

TEST(BatchPolicyTest, WhatIsRemovedIsNotPickedAndIsCounted) {
  BatchPolicy policy({100, 100});
  policy.Add(1, 0, kNow + absl::Hours(1), Lengths(9, 10));
  policy.Add(2, 0, kNever, Lengths(1, 10));
  policy.Next(Greedy(50), kNow);
  EXPECT_EQ(policy.Remove(1), 4);
  EXPECT_EQ(policy.Remove(1), 0);
  EXPECT_EQ(policy.Remove(77), 0);
  EXPECT_EQ(policy.waiting_sequences(), 1);
  EXPECT_EQ(policy.waiting_tokens(), 10);
  EXPECT_THAT(policy.RemoveAll(), ElementsAre(Pair(2, 1)));
  EXPECT_TRUE(policy.empty());
  EXPECT_EQ(policy.waiting_tokens(), 0);
}

constexpr FairShares kWithSmall = {100, 400, 50};

TEST(BatchPolicyTest, SmallRequestsGoFirstAndAlone) {
  BatchPolicy policy(kWithSmall);
  policy.Add(1, 1, kNever, Lengths(9, 100));
  policy.Add(2, 1, kNever, {20, 30});
  policy.Add(3, 2, kNever, {51});
  EXPECT_TRUE(policy.small_waits());
  EXPECT_THAT(policy.Next(Greedy(400), kNow).slices,
              ElementsAre(SliceOf(2, 0, 2)));
  EXPECT_FALSE(policy.small_waits());
  EXPECT_EQ(policy.Next(Greedy(400), kNow).tokens, 351);
}

TEST(BatchPolicyTest, APauseGetsSmallRequestsOrNothing) {
  BatchPolicy policy(kWithSmall);
  policy.Add(1, 1, kNever, Lengths(9, 100));
  EXPECT_THAT(policy.NextSmall(50, kNow).slices, IsEmpty());
  policy.Add(2, 2, kNever, {20, 30});
  policy.Add(3, 3, kNow, {20});
  policy.Add(4, 4, kNever, {10});
  const BatchDecision pause = policy.NextSmall(50, kNow);
  EXPECT_THAT(pause.slices, ElementsAre(SliceOf(2, 0, 2)));
  EXPECT_THAT(pause.expired, ElementsAre(Pair(3, 1)));
  EXPECT_THAT(policy.NextSmall(50, kNow).slices, ElementsAre(SliceOf(4, 0, 1)));
  EXPECT_EQ(policy.waiting_tokens(), 900);
}

// However many small requests come, of one caller or of new ones each time.
TEST(BatchPolicyTest, SmallRequestsNeverKeepALongOneWaiting) {
  for (const bool one_caller : {true, false}) {
    BatchPolicy policy(kWithSmall);
    policy.Add(1, 1, kNever, Lengths(2, 100));
    int64_t small = 0;
    while (!policy.empty() && small < 10000) {
      const auto id = static_cast<uint64_t>(small) + 2;
      policy.Add(id, one_caller ? 1 : id, kNever, {40});
      small += 40;
      bool served = false;
      for (const RequestSlice& slice : policy.Next(Greedy(80), kNow).slices) {
        served |= slice.request == 1;
      }
      if (served) break;
    }
    EXPECT_LE(small, 2 * (400 + 100 + 80)) << "one caller: " << one_caller;
  }
}

// The lead is per caller, so that many callers have many leads.
TEST(BatchPolicyTest, ManyCallersOfSmallRequestsDoNotKeepALongOneWaiting) {
  BatchPolicy policy(kWithSmall);
  for (uint64_t i = 2; i < 102; ++i) policy.Add(i, i, kNever, {40});
  policy.Add(1, 1, kNever, Lengths(2, 100));
  int64_t small = 0;
  for (uint64_t id = 200; small < 1000000; ++id) {
    const BatchDecision decision = policy.Next(Greedy(80), kNow);
    bool served = false;
    for (const RequestSlice& slice : decision.slices) {
      served |= slice.request == 1;
      policy.Add(1000 + slice.request * 100 + id, slice.request, kNever, {40});
    }
    if (served) break;
    small += decision.tokens;
  }
  EXPECT_LE(small, 100 * (100 + 40));  // a turn of each
}

TEST(BatchPolicyTest, ABatchOfSmallRequestsIsAsLargeAsAnother) {
  BatchPolicy policy(kWithSmall);
  for (uint64_t i = 0; i < 40; ++i) policy.Add(i, i, kNever, {20});
  EXPECT_EQ(policy.Next(Greedy(400), kNow).tokens, 400);
}

}  // namespace
}  // namespace encoderd
