#include "server/observe/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace encoderd {
namespace {

TEST(LogTest, PlainValuesStandAsTheyAre) {
  EXPECT_EQ(LogFields().Add("a", 1).Add("b", "x/y=z").text(), "a=1 b=x/y=z");
}

TEST(LogTest, OtherValuesAreQuotedAndStayOnOneLine) {
  EXPECT_EQ(LogFields().Add("a", "two words").text(), "a=\"two words\"");
  EXPECT_EQ(LogFields().Add("a", "it's 'so'").text(), "a=\"it's 'so'\"");
  EXPECT_EQ(LogFields().Add("a", "").text(), "a=\"\"");
  EXPECT_EQ(LogFields().Add("a", "1\nlevel=error \"x\"").text(),
            "a=\"1\\nlevel=error \\\"x\\\"\"");
}

TEST(LogTest, ALineHasTimeLevelAndEvent) {
  ::testing::internal::CaptureStderr();
  Log(LogLevel::kWarning, "something", LogFields().Add("n", 7));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::MatchesRegex("ts=[0-9T:.-]+Z level=warning "
                                      "event=something n=7\n"));
}

}  // namespace
}  // namespace encoderd
