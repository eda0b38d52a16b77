// The parts of encoderctl that need no server.
#include <sstream>
#include <string>
#include <vector>

#include "client/cpp/encoderctl/flags.h"
#include "client/cpp/encoderctl/npy.h"
#include "client/cpp/encoderctl/number.h"
#include "client/cpp/encoderctl/progress.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace encoderd::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FlagsTest : public ::testing::Test {
 protected:
  FlagsTest() {
    flags_.AddString("target", "HOST:PORT", "where", &target_);
    flags_.AddInt("batch_size", "N", "texts", 1, 100, &batch_size_);
    flags_.AddDuration("timeout", "for one call", &timeout_);
    flags_.AddChoice("format", "how", {"text", "npy"}, &format_);
  }
  absl::Status Parse(std::vector<std::string> arguments) {
    return flags_.Parse(arguments, &positional_);
  }

  std::string target_ = "localhost:1";
  int batch_size_ = 64;
  absl::Duration timeout_ = absl::Minutes(1);
  std::string format_ = "text";
  std::vector<std::string> positional_;
  Flags flags_;
};

TEST_F(FlagsTest, TakesValuesAfterEqualsSignOrSpace) {
  ASSERT_TRUE(
      Parse({"a", "--target=b:2", "--batch_size", "7", "--timeout=500ms", "c"})
          .ok());
  EXPECT_EQ(target_, "b:2");
  EXPECT_EQ(batch_size_, 7);
  EXPECT_EQ(timeout_, absl::Milliseconds(500));
  EXPECT_EQ(format_, "text");
  EXPECT_THAT(positional_, ElementsAre("a", "c"));
}

TEST_F(FlagsTest, LeavesEverythingAfterTwoDashesAlone) {
  ASSERT_TRUE(Parse({"--", "--target=x", "-"}).ok());
  EXPECT_EQ(target_, "localhost:1");
  EXPECT_THAT(positional_, ElementsAre("--target=x", "-"));
}

TEST_F(FlagsTest, NamesFlagValueAndWhatItTakes) {
  EXPECT_EQ(Parse({"--batch_size=0"}).message(),
            "--batch_size is \"0\"; it takes a whole number from 1 to 100");
  EXPECT_EQ(Parse({"--format=xml"}).message(),
            "--format is \"xml\"; it takes one of text|npy");
  EXPECT_THAT(std::string(Parse({"--timeout=5"}).message()),
              HasSubstr("a time above 0 with its unit"));
  EXPECT_EQ(Parse({"--nonsense"}).message(), "unknown flag --nonsense");
  EXPECT_EQ(Parse({"--target"}).message(), "--target needs a value: HOST:PORT");
}

TEST_F(FlagsTest, ShowsDefaultsInItsHelp) {
  EXPECT_THAT(flags_.Help(),
              HasSubstr("--batch_size=N\n      texts (default 64)\n"));
  EXPECT_THAT(flags_.Help(), HasSubstr("(default 1m)"));
  EXPECT_THAT(flags_.Help(), HasSubstr("--format=text|npy"));
}

TEST(NpyTest, WritesAHeaderOfFixedLength) {
  const std::string header = NpyHeader(1234567890, 4096);
  ASSERT_EQ(header.size(), static_cast<size_t>(kNpyHeaderBytes));
  EXPECT_EQ(header.substr(0, 10), std::string("\x93NUMPY\x01\x00v\x00", 10));
  EXPECT_THAT(header, HasSubstr("{'descr': '<f4', 'fortran_order': False, "
                                "'shape': (1234567890, 4096), }"));
  EXPECT_EQ(header.back(), '\n');
}

TEST(NumberTest, WritesTheShortestTextThatReadsBack) {
  std::string text;
  AppendFloats({0.1f, -1.0f, 1.17549435e-38f, 0.0f}, " ", &text);
  EXPECT_EQ(text, "0.1 -1 1.1754944e-38 0");
}

TEST(ProgressTest, ShowsRateShareAndRest) {
  EXPECT_EQ(ProgressLine(1200, 0.25, absl::Seconds(2)),
            "1200 texts  600 texts/s  [#####---------------]  25 %  6s left");
  // Half was done before: the rest takes as long as the quarter since.
  EXPECT_EQ(ProgressLine(1200, 0.75, absl::Seconds(2), 0.5),
            "1200 texts  600 texts/s  [###############-----]  75 %  2s left");
  EXPECT_EQ(ProgressLine(10, -1, absl::Seconds(2)), "10 texts  5 texts/s");
}

TEST(ProgressTest, TakesItsLineOffTheTerminal) {
  std::ostringstream terminal;
  {
    Progress progress(&terminal);
    progress.Update(1, 0.5);
  }
  const std::string written = terminal.str();
  EXPECT_EQ(written.front(), '\r');
  EXPECT_EQ(written.back(), '\r');
}

}  // namespace
}  // namespace encoderd::ctl
