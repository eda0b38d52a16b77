#include "client/cpp/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace encoderd::client {
namespace {

TEST(Utf8Test, TakesEverySequenceLength) {
  const std::string text = "a\x7f \xc2\x80 \xe2\x82\xac \xf0\x9f\x98\x80";
  EXPECT_EQ(ValidUtf8Prefix(text), text.size());
  EXPECT_EQ(ValidUtf8Prefix(""), 0u);
  EXPECT_EQ(ValidUtf8Prefix(std::string(3, '\0')), 3u);
}

TEST(Utf8Test, TakesTheLastCodePointAndRefusesTheNext) {
  EXPECT_EQ(ValidUtf8Prefix("\xf4\x8f\xbf\xbf"), 4u);
  EXPECT_EQ(ValidUtf8Prefix("\xf4\x90\x80\x80"), 0u);
  EXPECT_EQ(ValidUtf8Prefix("\xf5\x80\x80\x80"), 0u);
}

TEST(Utf8Test, RefusesOverlongForms) {
  EXPECT_EQ(ValidUtf8Prefix("ab\xc0\x80"), 2u);
  EXPECT_EQ(ValidUtf8Prefix("ab\xc1\xbf"), 2u);
  EXPECT_EQ(ValidUtf8Prefix("ab\xe0\x9f\xbf"), 2u);
  EXPECT_EQ(ValidUtf8Prefix("ab\xf0\x8f\xbf\xbf"), 2u);
}

TEST(Utf8Test, RefusesSurrogates) {
  EXPECT_EQ(ValidUtf8Prefix("\xed\x9f\xbf"), 3u);
  EXPECT_EQ(ValidUtf8Prefix("\xed\xa0\x80"), 0u);
  EXPECT_EQ(ValidUtf8Prefix("\xed\xbf\xbf"), 0u);
}

TEST(Utf8Test, RefusesStrayAndMissingContinuationBytes) {
  EXPECT_EQ(ValidUtf8Prefix("a\x80"), 1u);
  EXPECT_EQ(ValidUtf8Prefix("a\xe2\x82"), 1u);
  EXPECT_EQ(ValidUtf8Prefix("a\xe2\x82z"), 1u);
  EXPECT_EQ(ValidUtf8Prefix("a\xff"), 1u);
}

}  // namespace
}  // namespace encoderd::client
