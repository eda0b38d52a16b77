#include "server/pipeline/windows.h"

#include <gtest/gtest.h>

#include <vector>

namespace encoderd {
namespace {

TEST(WindowsTest, ATextThatFitsIsOneWindow) {
  const WindowRule rule = {10, 2, 3};
  for (const int64_t tokens : {0, 1, 8}) {
    EXPECT_EQ(CountWindows(rule, tokens), 1);
    EXPECT_EQ(WindowTokens(rule, tokens), tokens + 2);
    EXPECT_EQ(WindowAt(rule, tokens, 0).end, tokens);
  }
  EXPECT_EQ(CountWindows(rule, 9), 2);
}

TEST(WindowsTest, WithoutOverlapTheyLieEndToEnd) {
  const WindowRule rule = {10, 2, 0};
  EXPECT_EQ(CountWindows(rule, 16), 2);
  EXPECT_EQ(CountWindows(rule, 17), 3);
  EXPECT_EQ(WindowTokens(rule, 17), 17 + 3 * 2);
  EXPECT_EQ(WindowAt(rule, 17, 1).begin, 8);
  EXPECT_EQ(WindowAt(rule, 17, 2).begin, 16);
  EXPECT_EQ(WindowAt(rule, 17, 2).end, 17);
}

// Everything that the rule promises, for every small case.
TEST(WindowsTest, CoverEveryTokenShareTheOverlapAndFit) {
  for (int64_t max_len = 3; max_len < 14; ++max_len) {
    for (int64_t special = 0; special < 3; ++special) {
      for (int64_t overlap = 0; overlap < max_len - special; ++overlap) {
        const WindowRule rule = {max_len, special, overlap};
        for (int64_t tokens = 1; tokens < 60; ++tokens) {
          const int64_t count = CountWindows(rule, tokens);
          int64_t all = 0;
          int64_t covered = 0;
          for (int64_t i = 0; i < count; ++i) {
            const TextRange range = WindowAt(rule, tokens, i);
            const int64_t size = range.end - range.begin;
            if (i == 0) {
              ASSERT_EQ(range.begin, 0);
            } else {
              ASSERT_EQ(covered - range.begin, overlap);
              ASSERT_GT(range.end, covered);  // brings something new
            }
            ASSERT_LE(size + special, max_len);
            if (i + 1 < count) {
              ASSERT_EQ(size + special, max_len);
            }
            covered = range.end;
            all += size + special;
          }
          ASSERT_EQ(covered, tokens);
          ASSERT_EQ(all, WindowTokens(rule, tokens));
        }
      }
    }
  }
}

TEST(WindowsTest, CountsAMillionTokensWithoutMakingThem) {
  EXPECT_EQ(CountWindows({256, 2, 253}, 1000000), 1000000 - 253);
  EXPECT_EQ(WindowTokens({256, 2, 253}, 1000000), 256 * (1000000 - 253));
}

}  // namespace
}  // namespace encoderd
