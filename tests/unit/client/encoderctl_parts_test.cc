// The parts of encoderctl that need no server.
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "client/cpp/encoderctl/flags.h"
#include "client/cpp/encoderctl/near_miss.h"
#include "client/cpp/encoderctl/npy.h"
#include "client/cpp/encoderctl/number.h"
#include "client/cpp/encoderctl/progress.h"
#include "client/cpp/encoderctl/resume_mark.h"
#include "client/cpp/encoderctl/row_file.h"
#include "client/cpp/encoderctl/wrap.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace encoderd::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FlagsTest : public ::testing::Test {
 protected:
  enum class Format { kText, kNpy };

  FlagsTest() {
    flags_.AddString("target", "HOST:PORT", "where", &target_);
    flags_.AddInt("batch_size", "N", "texts", 1, 100, &batch_size_);
    flags_.AddDuration("timeout", "for one call", &timeout_);
    flags_.AddChoice("format", "how",
                     {{"text", Format::kText}, {"npy", Format::kNpy}},
                     &format_);
  }
  absl::Status Parse(std::vector<std::string> arguments) {
    return flags_.Parse(arguments, &positional_);
  }

  std::string target_ = "localhost:1";
  int batch_size_ = 64;
  absl::Duration timeout_ = absl::Minutes(1);
  Format format_ = Format::kText;
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
  EXPECT_EQ(format_, Format::kText);
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
  EXPECT_EQ(Parse({"--target"}).message(),
            "--target needs a value: --target=HOST:PORT");
  EXPECT_EQ(Parse({"--target", "--format=npy"}).message(),
            "--target needs a value: --target=HOST:PORT");
  EXPECT_EQ(target_, "localhost:1");
}

TEST_F(FlagsTest, NamesTheFlagsThatAnUnknownOneMayHaveMeant) {
  EXPECT_EQ(Parse({"--taget=x"}).message(),
            "unknown flag --taget; did you mean --target?");
  EXPECT_EQ(Parse({"--batch"}).message(),
            "unknown flag --batch; did you mean --batch_size?");
  EXPECT_EQ(Parse({"--format=txt"}).message(),
            "--format is \"txt\"; it takes one of text|npy; did you mean "
            "text?");
  EXPECT_EQ(Parse({"--timeout=5"}).message(),
            "--timeout is \"5\"; it takes a time above 0 with its unit, such "
            "as 500ms, 30s or 2m; did you mean 5s?");
}

TEST_F(FlagsTest, TakesNoTextThatBeginsWithADashUnlessTwoDashesPrecedeIt) {
  EXPECT_EQ(Parse({"hi", "-t", "x"}).message(),
            "unknown flag -t; did you mean --target or --timeout? (a text "
            "that begins with a dash goes after --)");
  EXPECT_EQ(Parse({"-format=npy"}).message(),
            "unknown flag -format; did you mean --format? (a text that begins "
            "with a dash goes after --)");
  for (const char* text : {"-5", "- a list's item", "-", "-h\xc3\xa4"}) {
    EXPECT_THAT(std::string(Parse({text}).message()),
                HasSubstr("a text that begins with a dash goes after --"))
        << text;
  }
  positional_.clear();
  ASSERT_TRUE(Parse({"--", "-5", "- a list's item", "-"}).ok());
  EXPECT_THAT(positional_, ElementsAre("-5", "- a list's item", "-"));
}

TEST_F(FlagsTest, TakesDashesForUnderscores) {
  ASSERT_TRUE(Parse({"--batch-size=7"}).ok());
  EXPECT_EQ(batch_size_, 7);
}

TEST_F(FlagsTest, TakesNoWordAfterASwitchForItsValueOrForAText) {
  bool fast = false;
  flags_.AddSwitch("fast", "whether", &fast);
  EXPECT_EQ(
      Parse({"--fast", "no"}).message(),
      "--fast no: write --fast=no; to pass \"no\" as a text, put it after "
      "--");
  ASSERT_TRUE(Parse({"--fast", "text"}).ok());
  EXPECT_TRUE(fast);
  ASSERT_TRUE(Parse({"--fast=false"}).ok());
  EXPECT_FALSE(fast);
}

TEST_F(FlagsTest, SetsWhatTheWordOfAChoiceStandsFor) {
  std::optional<bool> normalize;
  flags_.AddChoice("normalize", "whether",
                   {{"model", std::nullopt}, {"yes", true}, {"no", false}},
                   &normalize);
  EXPECT_THAT(flags_.Help(),
              HasSubstr("--normalize=model|yes|no\n      whether (default "
                        "model)\n"));
  EXPECT_THAT(flags_.Candidates(), HasSubstr("--normalize model yes no\n"));
  ASSERT_TRUE(Parse({"--format=npy", "--normalize=no"}).ok());
  EXPECT_EQ(format_, Format::kNpy);
  EXPECT_EQ(normalize, false);
  EXPECT_FALSE(Parse({"--format=text", "--normalize=maybe"}).ok());
  EXPECT_EQ(format_, Format::kText);
  EXPECT_EQ(normalize, false);
  ASSERT_TRUE(Parse({"--normalize=model"}).ok());
  EXPECT_EQ(normalize, std::nullopt);
}

TEST_F(FlagsTest, RefusesAFileThatIsGivenTwiceAndTakesTheLastOfOtherValues) {
  std::string file;
  flags_.AddFile("input", "texts", &file);
  EXPECT_THAT(flags_.Help(), HasSubstr("--input=FILE\n      texts\n"));
  EXPECT_EQ(
      Parse({"--input=a", "--target=b", "--target=c", "--input=d"}).message(),
      "--input is given 2 times; give it once");
  EXPECT_EQ(target_, "c");
}

TEST_F(FlagsTest, ShowsDefaultsInItsHelp) {
  EXPECT_THAT(flags_.Help(),
              HasSubstr("--batch_size=N\n      texts (default 64)\n"));
  EXPECT_THAT(flags_.Help(), HasSubstr("(default 1m)"));
  EXPECT_THAT(flags_.Help(),
              HasSubstr("--format=text|npy\n      how (default text)\n"));
}

TEST(NearMissesTest, NamesBeginningsFirstThenFewestEdits) {
  const std::vector<std::string> names = {"embed", "encode", "tokenize",
                                          "models"};
  EXPECT_THAT(NearMisses("e", names), ElementsAre("embed", "encode"));
  EXPECT_THAT(NearMisses("embde", names), ElementsAre("embed"));
  EXPECT_THAT(NearMisses("TOKENISE", names), ElementsAre("tokenize"));
  EXPECT_THAT(NearMisses("frobnicate", names), ElementsAre());
  EXPECT_THAT(NearMisses("", names), ElementsAre());
  EXPECT_THAT(NearMisses(std::string(1 << 20, 'e'), names), ElementsAre());
}

TEST(WrapTest, BreaksBetweenWordsBefore80Columns) {
  const std::string word(30, 'x');
  EXPECT_EQ(Wrap(word + " " + word + " " + word, 6),
            "      " + word + " " + word + "\n      " + word + "\n");
  const std::string endless(100, 'y');
  EXPECT_EQ(Wrap("a " + endless + " b", 2), "  a\n  " + endless + "\n  b\n");
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
  EXPECT_EQ(ProgressLine(1, -1, absl::Seconds(1)), "1 text  1 texts/s");
}

TEST(ProgressTest, DrawsNothingWhilePatienceLasts) {
  std::ostringstream terminal;
  {
    Progress progress(&terminal, absl::InfiniteDuration());
    progress.Update(1, 0.5);
    progress.Update(2, 1);
  }
  EXPECT_EQ(terminal.str(), "");
}

TEST(ProgressTest, EndsWithTextsSecondsAndRate) {
  std::ostringstream terminal;
  Progress progress(&terminal);
  progress.Update(1, 0.5);
  progress.End(7);
  EXPECT_THAT(terminal.str(),
              ::testing::MatchesRegex(".*\r7 texts in 0\\.[0-9] s, [0-9]+ "
                                      "texts/s\n"));
  std::ostringstream quick;
  Progress(&quick, absl::InfiniteDuration()).End(7);
  EXPECT_EQ(quick.str(), "");
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

TEST(ResumeMarkTest, KnowsTheModelByItsFingerprint) {
  v1::Model model;
  model.set_name("before");
  model.set_device("CPU");
  model.set_fingerprint("one");
  const std::string mark = MarkWork(model, {});
  v1::Model elsewhere = model;
  elsewhere.set_name("after");
  elsewhere.set_device("GPU");
  EXPECT_EQ(MarkWork(elsewhere, {}), mark);
  elsewhere.set_fingerprint("two");
  EXPECT_NE(MarkWork(elsewhere, {}), mark);
}

TEST(ResumeMarkTest, KnowsAModelWithoutFingerprintByAllThatIsSaidOfIt) {
  v1::Model model;
  model.set_max_len(512);
  const std::string mark = MarkWork(model, {});
  model.set_max_inputs_per_request(8);  // changes no row
  EXPECT_EQ(MarkWork(model, {}), mark);
  model.set_max_len(256);
  EXPECT_NE(MarkWork(model, {}), mark);
}

TEST(RowFileTest, AFileThatLostItsNameIsNotDone) {
  const TempFolder folder;
  const std::string path = folder.Path("out.npy");
  for (const bool lost : {false, true}) {
    auto file = RowFile::Open(path, {"<f4", 1, 4}, 0);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Append("abcd").ok());
    if (lost) std::filesystem::remove(path);
    const absl::Status closed = (*file)->Close();
    EXPECT_EQ(closed.ok(), !lost);
    EXPECT_THAT(closed.message(), HasSubstr(lost ? "removed or replaced" : ""));
  }
}

}  // namespace
}  // namespace encoderd::ctl
