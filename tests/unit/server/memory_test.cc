// When memory goes back to the system: a rule over resident sizes.
#include "server/memory.h"

#include <gtest/gtest.h>

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

TEST(TrimRuleTest, MemoryInUseIsTriedOnceAMinute) {
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

}  // namespace
}  // namespace encoderd
