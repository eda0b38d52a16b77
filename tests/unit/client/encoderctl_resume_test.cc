// encoderctl embed into an .npy: resuming an interrupted run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/client/bulk_runs.h"

namespace encoderd::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using EncoderctlResumeTest = BulkRuns;

TEST_F(EncoderctlResumeTest, SurvivesBrokenStreamsAndGivesTheSameBytes) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  EXPECT_THAT(err_, IsEmpty());
  const std::string whole = Read(Path("whole.npy"));
  EXPECT_EQ(whole.size(), kNpyHeaderBytes + kTexts * 6 * sizeof(float));
  EXPECT_FALSE(std::filesystem::exists(Path("whole.npy.resume")));

  const int64_t before = service_.stream_texts();
  service_.BreakStreams(1 << 30, 40);
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_EQ(Read(Path("out.npy")), whole);
  service_.BreakStreams(0, 0);
  EXPECT_LE(service_.stream_texts() - before, kTexts + 4 * kWindow);
}

TEST_F(EncoderctlResumeTest, ALaterRunDoesNotDoFinishedWorkAgain) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  const int64_t before = service_.stream_texts();
  FailARun();
  EXPECT_THAT(err_, HasSubstr("DEVICE_FAULT"));
  const std::string half = Read(Path("out.npy"));
  EXPECT_GT(half.size(), static_cast<size_t>(kNpyHeaderBytes));
  EXPECT_EQ(half.substr(0, kNpyHeaderBytes),
            NpyHeader((half.size() - kNpyHeaderBytes) / 24, 6));
  EXPECT_THAT(err_, HasSubstr("texts are done; to resume, repeat the command"));
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_EQ(err_, absl::StrCat("encoderctl embed: Resuming: ",
                               (half.size() - kNpyHeaderBytes) / 24,
                               " texts already done.\n"));
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy.resume")));
  EXPECT_LE(service_.stream_texts() - before, kTexts + kWindow);
  // Nothing is left to resume.
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_EQ(err_, absl::StrCat("encoderctl embed: ", Path("out.npy"),
                               " will be replaced: there is no run to "
                               "resume\n"));
}

TEST_F(EncoderctlResumeTest, TheInputIsKnownByItsUsedTextsAlone) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  FailARun();
  const std::string lines = Read(Path("in.jsonl"));
  // Another name, time and spelling, and more texts behind.
  Write("in.jsonl", "");
  std::string spelled = lines;
  for (size_t at = 0; (at = spelled.find("\": ", at)) != std::string::npos;) {
    spelled.replace(at, 3, "\":");
  }
  Write("copy.jsonl", spelled + "\"more\"\n");
  EXPECT_EQ(Run("out.npy", {}, "copy.jsonl"), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("Resuming: "));
  EXPECT_EQ(Read(Path("out.npy")).substr(kNpyHeaderBytes, kTexts * 24),
            Read(Path("whole.npy")).substr(kNpyHeaderBytes));
  EXPECT_EQ(Read(Path("out.npy")).substr(0, kNpyHeaderBytes),
            NpyHeader(kTexts + 1, 6));
}

TEST_F(EncoderctlResumeTest, ABadTextMayBeCorrectedAndAUsedOneMayNot) {
  Write("in.jsonl", "");
  Write("in.txt", "one\ntwo\na b c d e f g");
  EXPECT_EQ(Run("out.npy", {}, "in.txt"), kExitFailed);
  EXPECT_THAT(err_,
              HasSubstr("2 texts are done; to resume, correct this text"));
  Write("in.txt", "one\ntwo\nthree");
  EXPECT_EQ(Run("out.npy", {}, "in.txt"), kExitOk) << err_;
  EXPECT_EQ(err_, "encoderctl embed: Resuming: 2 texts already done.\n");
  EXPECT_EQ(Run("other.npy", {}, "in.txt"), kExitOk) << err_;
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("other.npy")));
  Write("bad.txt", "one\ntwo\na b c d e f g");
  EXPECT_EQ(Run("out.npy", {}, "bad.txt"), kExitFailed);
  Write("bad.txt", "one\ntwo more\nthree");
  EXPECT_EQ(Run("out.npy", {}, "bad.txt"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("the text of "));
  EXPECT_THAT(err_, HasSubstr("bad.txt:2 changed since"));
  Write("bad.txt", "one\n");
  EXPECT_EQ(Run("out.npy", {}, "bad.txt"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr(" holds 2 rows of an interrupted run, and the "
                              "input ends after text 1; to resume it, repeat"));
}

// What a death leaves between any two steps of a run.
TEST_F(EncoderctlResumeTest, EveryStateOfADeadRunIsResumed) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  FailARun();
  const std::string rows = Read(Path("out.npy"));
  const std::string marks = Read(Path("out.npy.resume"));
  const int64_t done = (marks.size() - kNpyHeaderBytes) / 24 - 2;
  const std::string row(24, 'x'), mark(24, 'x');
  const auto head = [](std::string file, int64_t count, int columns,
                       const char* type) {
    return file.replace(0, kNpyHeaderBytes, NpyHeader(count, columns, type));
  };
  const std::string row_more = head(rows + row, done + 1, 6, "<f4");
  struct State {
    const char* what;
    std::string rows, marks;
    int64_t done;
  };
  const State states[] = {
      {"nothing since the last answer", rows, marks, done},
      {"half a row", rows + row.substr(0, 9), marks, done},
      {"a row that is not counted", rows + row, marks, done},
      {"a row without a mark", row_more, marks, done},
      {"half a mark", row_more, marks + mark.substr(0, 9), done},
      {"a mark that is not counted", row_more, marks + mark, done},
      {"rows that are not cut yet", rows, head(marks, 102, 24, "|u1"), 100},
      {"no mark of a text", "finished", head(marks, 2, 24, "|u1"), 0},
      {"no mark of the work", "finished", head("", 0, 24, "|u1"), 0},
      {"no marks", "finished", "", 0},
      {"no rows", "", marks, 0},
  };
  const std::string replaced =
      absl::StrCat("encoderctl embed: ", Path("out.npy"),
                   " will be replaced: there is no run to resume\n");
  for (const State& state : states) {
    Write("out.npy", state.rows);
    Write("out.npy.resume", state.marks);
    EXPECT_EQ(Run("out.npy"), kExitOk) << state.what << ": " << err_;
    EXPECT_EQ(err_, state.done > 0
                        ? absl::StrCat("encoderctl embed: Resuming: ",
                                       state.done, " texts already done.\n")
                    : state.rows.empty() ? ""
                                         : replaced)
        << state.what;
    EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy"))) << state.what;
    EXPECT_FALSE(std::filesystem::exists(Path("out.npy.resume")));
  }
}

TEST_F(EncoderctlResumeTest, ThrowsUnfinishedRowsOfOtherWorkAwayOnlyWhenAsked) {
  FailARun();
  const std::string half = Read(Path("out.npy"));
  const auto refuses = [&](const std::string& what,
                           std::vector<std::string> flags) {
    EXPECT_EQ(Run("out.npy", std::move(flags)), kExitFailed);
    EXPECT_THAT(err_, HasSubstr("rows of an interrupted run, and " + what));
    EXPECT_THAT(
        err_,
        HasSubstr(absl::StrCat(
            " changed since; to resume it, ",
            what == "the model" ? "serve the model that it had, and " : "",
            "repeat its command; --resume=no discards these rows and "
            "starts over\n")));
    EXPECT_EQ(Read(Path("out.npy")), half);
  };
  refuses("the options", {"--normalize=yes"});
  refuses("the options", {"--encoding=float16"});
  Write("in.jsonl", "\"new\"\n" + Read(Path("in.jsonl")));
  refuses("the text of " + Path("in.jsonl:1"), {});
  service_.SetPooling(v1::POOLING_CLS);
  refuses("the model", {});
  const int64_t before = service_.stream_texts();
  EXPECT_EQ(Run("out.npy", {"--resume=no"}), kExitOk) << err_;
  EXPECT_THAT(err_, IsEmpty());
  EXPECT_EQ(service_.stream_texts() - before, kTexts + 1);
}

TEST_F(EncoderctlResumeTest, OtherOutputsDoNotReplaceUnfinishedRows) {
  service_.FailAfterStreamTexts(700);  // whose name says nothing of rows
  EXPECT_EQ(Run("rows", {"--format=npy"}), kExitFailed);
  service_.AwaitEndOfStreams();
  service_.FailAfterStreamTexts(-1);
  const std::string half = Read(Path("rows"));
  EXPECT_EQ(Run("rows", {"--format=text"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("rows holds rows of an interrupted embed"));
  EXPECT_EQ(Read(Path("rows")), half);
  std::filesystem::remove(Path("rows"));  // their marks are void
  EXPECT_EQ(Run("rows", {"--format=text"}), kExitOk) << err_;
  EXPECT_FALSE(std::filesystem::exists(Path("rows.resume")));
}

TEST_F(EncoderctlResumeTest, MarksWithoutTheirRowsHoldNothingUp) {
  for (const bool damaged : {false, true}) {
    FailARun();
    std::filesystem::remove(Path("out.npy"));
    if (damaged) {
      const std::string marks = Read(Path("out.npy.resume"));
      Write("out.npy.resume", marks.substr(0, marks.size() - 9));
    }
    EXPECT_EQ(Run("out.npy", {"--normalize=yes"}), kExitOk) << err_;
    EXPECT_THAT(err_, IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(Path("out.npy.resume")));
  }
}

TEST_F(EncoderctlResumeTest, AFileOfAPersonsOwnIsNeitherDeletedNorWritten) {
  const std::string notes = "my notes\n" + std::string(400, 'x');
  const std::string array = NpyHeader(3, 6) + std::string(72, 'x');
  for (const std::string& own : {notes, array}) {
    // Not in the way of an output that keeps no marks, be it new or not.
    Write("notes.resume", own);
    EXPECT_EQ(Run("notes", {"--format=text"}), kExitOk) << err_;
    EXPECT_EQ(Run("notes", {"--format=jsonl"}), kExitOk) << err_;
    EXPECT_EQ(Read(Path("notes.resume")), own);
    // In the way of marks: --resume=no gives up rows, not this.
    for (const bool found : {false, true}) {
      std::filesystem::remove(Path("out.npy"));
      if (found) Write("out.npy", "earlier");
      Write("out.npy.resume", own);
      for (const std::string resume : {"--resume=yes", "--resume=no"}) {
        EXPECT_EQ(Run("out.npy", {resume}), kExitFailed);
        EXPECT_THAT(err_, HasSubstr(Path("out.npy.resume") +
                                    " is damaged, or not what encoderctl wrote "
                                    "there; move or remove it"));
        EXPECT_EQ(Read(Path("out.npy.resume")), own);
        EXPECT_EQ(std::filesystem::exists(Path("out.npy")), found);
      }
    }
  }
}

TEST_F(EncoderctlResumeTest, RowsOfSkippedTextsAreResumedOnlyBySkipping) {
  // Two good texts, a bad one, one that cannot be read; then a run dies.
  std::string lines = "\"one\"\n\"two\"\n\"a b c d e f g\"\n12\n";
  for (int i = 0; i < kTexts; ++i)
    absl::StrAppend(&lines, "\"text ", i, "\"\n");
  Write("in.jsonl", lines);
  ASSERT_EQ(Run("whole.npy", {"--on_error=skip"}), kExitOk) << err_;
  EXPECT_THAT(err_,
              HasSubstr("\nencoderctl embed: 2 of 2004 texts were skipped; "
                        "their rows are all zeros\n"));
  FailARun({"--on_error=skip"});
  const std::string half = Read(Path("out.npy"));

  EXPECT_EQ(Run("out.npy"), kExitFailed);
  EXPECT_EQ(err_,
            absl::StrCat("encoderctl embed: ", Path("out.npy"),
                         " holds rows of an interrupted run that skipped ",
                         Path("in.jsonl:3"),
                         "; to resume it, add --on_error=skip; --resume=no "
                         "discards these rows and starts over\n"));
  EXPECT_EQ(Read(Path("out.npy")), half);

  EXPECT_EQ(Run("out.npy", {"--on_error=skip"}), kExitOk) << err_;
  EXPECT_EQ(err_,
            absl::StrCat("encoderctl embed: Resuming: ",
                         (half.size() - kNpyHeaderBytes) / 24,
                         " texts already done, 2 of them skipped.\n"
                         "encoderctl embed: 2 of 2004 texts were skipped; "
                         "their rows are all zeros\n"));
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
  EXPECT_EQ(Run("fresh.npy"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("in.jsonl:3: INVALID_ARGUMENT"));
}

TEST_F(EncoderctlResumeTest, ARunThatSkippedNothingIsResumedEitherWay) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  FailARun({"--on_error=skip"});
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr(" texts already done.\n"));
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
}

TEST_F(EncoderctlResumeTest, ARunThatIsRefusedCostsNoHalfDoneWork) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  FailARun();
  RefuseARun("out.npy", {});
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("Resuming: "));
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
}

TEST_F(EncoderctlResumeTest, RowsOfOtherTextsAreNotResumed) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  FailARun();
  std::string others;
  for (int i = 0; i < 2 * kTexts; ++i) others += "other\n";
  for (const std::string resume : {"yes", "no"}) {
    std::istringstream in(others);
    std::ostringstream out, err;
    Environment environment{in, out, err};
    EXPECT_EQ(RunEncoderctl(
                  {"embed", "--target=" + service_.target(), "--on_error=skip",
                   "--resume=" + resume, "--output=" + Path("out.npy")},
                  environment),
              resume == "yes" ? kExitFailed : kExitOk);
    EXPECT_EQ(Read(Path("out.npy.resume")).empty(), resume == "no");
  }
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy.resume")));
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
}

TEST_F(EncoderctlResumeTest, RefusesMarksThatAreDamagedOrContradictTheRows) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  FailARun();
  const std::string marks = Read(Path("out.npy.resume"));
  const std::string half = Read(Path("out.npy"));
  const auto refuses = [&](const std::string& marks_now,
                           const std::string& rows_now,
                           const std::string& words,
                           const std::string& remedy =
                               "--resume=no discards these rows and "
                               "starts over\n") {
    Write("out.npy.resume", marks_now);
    Write("out.npy", rows_now);
    EXPECT_EQ(Run("out.npy"), kExitFailed);
    EXPECT_THAT(err_, HasSubstr(words));
    EXPECT_THAT(err_, HasSubstr("; " + remedy));
    EXPECT_EQ(Read(Path("out.npy")), rows_now);
    EXPECT_EQ(Read(Path("out.npy.resume")), marks_now);
  };
  for (const std::string& damaged :
       {std::string(400, '\0'), std::string("some other text\n"),
        marks.substr(0, 40), marks.substr(0, 70) + "9" + marks.substr(71)}) {
    refuses(damaged, half, Path("out.npy.resume is damaged"),
            "move or remove it, or write to another --output\n");
  }
  refuses(marks.substr(0, marks.size() - 1), half,
          Path("out.npy.resume is damaged"));
  std::string flipped = marks;
  flipped[marks.size() - 20] ^= 1;
  refuses(flipped, half, " changed since");
  refuses(marks, half.substr(0, half.size() - 1), "out.npy is damaged");
  refuses(marks, std::string(4000, 'x'), "out.npy is damaged");
  refuses(marks, NpyHeader(1, 6) + half.substr(kNpyHeaderBytes),
          "rows and " + Path("out.npy holds 1"));
  EXPECT_EQ(Run("out.npy", {"--resume=no"}), kExitOk) << err_;
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
}

TEST_F(EncoderctlResumeTest, RefusesRowsThatItDidNotWrite) {
  ASSERT_EQ(Run("whole.npy", {"--encoding=int8"}), kExitOk) << err_;
  FailARun({"--encoding=int8"});
  const std::string rows = Read(Path("out.npy"));
  const std::string scales = Read(Path("out.npy.scales.npy"));
  const std::string head = rows.substr(0, kNpyHeaderBytes);
  std::string one_bit = rows;
  one_bit[kNpyHeaderBytes + 7 * 6] ^= 4;
  std::string other_scale = scales;
  other_scale[kNpyHeaderBytes + 7 * 4] ^= 4;
  struct Change {
    std::string rows, scales;
    int row;
  };
  for (const Change& change :
       {Change{one_bit, scales, 7}, Change{rows, other_scale, 7},
        Change{head + std::string(rows.size() - head.size(), '\0'), scales,
               0}}) {
    Write("out.npy", change.rows);
    Write("out.npy.scales.npy", change.scales);
    EXPECT_EQ(Run("out.npy", {"--encoding=int8"}), kExitFailed);
    EXPECT_THAT(err_, HasSubstr(absl::StrCat(
                          "row ", change.row, " of ", Path("out.npy"),
                          " or of ", Path("out.npy.scales.npy"),
                          " is not what the interrupted run wrote; "
                          "the rows cannot be used; --resume=no "
                          "discards these rows and starts over\n")));
    EXPECT_EQ(Read(Path("out.npy")), change.rows);
  }
  Write("out.npy", rows);
  Write("out.npy.scales.npy", "");
  EXPECT_EQ(Run("out.npy", {"--encoding=int8"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("and " + Path("out.npy.scales.npy holds 0")));
  Write("out.npy.scales.npy", scales);
  EXPECT_EQ(Run("out.npy", {"--encoding=int8"}), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("Resuming: "));
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
}

TEST_F(EncoderctlResumeTest, AFileHasTheSameMarksByEachOfItsNames) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  FailARun();
  std::filesystem::create_symlink(Path("out.npy"), Path("link.npy"));
  Write("other.jsonl", "\"other\"\n");
  EXPECT_EQ(Run("link.npy", {}, "other.jsonl"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("other.jsonl:1 changed since"));
  EXPECT_EQ(Run("link.npy"), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("Resuming: "));
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy.resume")));
  EXPECT_FALSE(std::filesystem::exists(Path("link.npy.resume")));
}

}  // namespace
}  // namespace encoderd::ctl
