// When memory goes back to the system: a rule over resident sizes.
#include "server/memory.h"

#include <gtest/gtest.h>

#include <string>

namespace encoderd {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(TrimRuleTest, ABurstIsTrimmedAtTheNextLook) {
  TrimRule rule;
  EXPECT_FALSE(rule.Look(100 * kMiB));
  EXPECT_FALSE(rule.Look(132 * kMiB));
  EXPECT_TRUE(rule.Look(133 * kMiB));
  rule.Trimmed(133 * kMiB, 110 * kMiB);
  EXPECT_FALSE(rule.Look(110 * kMiB));
  EXPECT_TRUE(rule.Look(500 * kMiB));
}

TEST(TrimRuleTest, WhatIsTrimmedInTheMiddleOfABurstIsTrimmedAfterIt) {
  TrimRule rule;
  rule.Look(100 * kMiB);
  EXPECT_TRUE(rule.Look(500 * kMiB));
  rule.Trimmed(500 * kMiB, 499 * kMiB);  // all of it was in use
  EXPECT_FALSE(rule.Look(480 * kMiB));
  EXPECT_TRUE(rule.Look(480 * kMiB));
}

TEST(TrimRuleTest, MemoryInUseIsTriedEveryMinute) {
  TrimRule rule;
  rule.Look(100 * kMiB);
  int trims = 0;
  for (int look = 0; look < 1200; ++look) {
    if (!rule.Look(500 * kMiB)) continue;
    rule.Trimmed(500 * kMiB, 500 * kMiB);
    ++trims;
  }
  EXPECT_GT(trims, 98);
  EXPECT_LT(trims, 106);
}

// What is logged by a look that trims from `before` to `after`.
std::string LoggedBy(int64_t before, int64_t after) {
  int64_t resident = before - TrimRule::kWorthBytes - 1;
  const ProcessMemory memory = {[&] { return resident; },
                                [&] { resident = after; }};
  TrimRule rule;
  LookAtMemory(&rule, memory);
  resident = before;
  ::testing::internal::CaptureStderr();
  LookAtMemory(&rule, memory);
  return ::testing::internal::GetCapturedStderr();
}

TEST(LookAtMemoryTest, ASizeThatCannotBeReadIsNone) {
  int64_t resident = 100 * kMiB;
  int trims = 0;
  const ProcessMemory memory = {[&] { return resident; }, [&] { ++trims; }};
  TrimRule rule;
  LookAtMemory(&rule, memory);
  resident = 0;
  LookAtMemory(&rule, memory);
  resident = 100 * kMiB;
  LookAtMemory(&rule, memory);
  EXPECT_EQ(trims, 0);
}

TEST(LookAtMemoryTest, OnlyWhatWasGivenBackIsLogged) {
  EXPECT_NE(LoggedBy(200 * kMiB, 120 * kMiB)
                .find("event=memory_trimmed before_bytes=209715200 "
                      "after_bytes=125829120"),
            std::string::npos);
  EXPECT_EQ(LoggedBy(200 * kMiB, 200 * kMiB), "");
  EXPECT_EQ(LoggedBy(200 * kMiB, 201 * kMiB), "");
}

}  // namespace
}  // namespace encoderd
