// encoderctl embed into an .npy: going on after a break, bad texts, formats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/encoderctl.h"
#include "client/cpp/encoderctl/line_reader.h"
#include "client/cpp/encoderctl/npy.h"
#include "client/cpp/encoderctl/output_file.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/temp_folder.h"

namespace encoderd::ctl {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kTexts = 2000;
constexpr int64_t kWindow = 8 * 16;  // --in_flight x --batch_size

std::string Read(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

class EncoderctlBulkTest : public ::testing::Test {
 protected:
  EncoderctlBulkTest() {
    std::string lines;
    for (int i = 0; i < kTexts; ++i) {
      absl::StrAppend(&lines, "{\"text\": \"text ", i, "\"}\n");
    }
    Write("in.jsonl", lines);
  }

  std::string Path(const std::string& name) const { return folder_.Path(name); }
  void Write(const std::string& name, const std::string& content) {
    folder_.Write(name, content);
  }
  int Run(const std::string& output, std::vector<std::string> flags = {},
          const std::string& input = "in.jsonl") {
    std::istringstream in;
    std::ostringstream out, err;
    Environment environment{in, out, err};
    std::vector<std::string> all = {
        "embed",        absl::StrCat("--target=", service_.target()),
        "--batch_size", "16",
        "--in_flight",  "8",
        "--input",      Path(input),
        "--output",     Path(output)};
    all.insert(all.end(), flags.begin(), flags.end());
    const int code = RunEncoderctl(all, environment);
    err_ = err.str();
    return code;
  }
  // A run into out.npy that fails in its middle. Nothing of it goes on in the
  // service afterwards: what stream_texts() gains then is the next run's.
  void FailARun() {
    service_.FailAfterStreamTexts(service_.stream_texts() + 700);
    EXPECT_EQ(Run("out.npy"), kExitFailed);
    service_.AwaitEndOfStreams();
    service_.FailAfterStreamTexts(-1);
  }

  // A run that the server refuses before any row.
  void RefuseARun(const std::string& output, std::vector<std::string> flags) {
    service_.FailNext(1, FakeError(grpc::StatusCode::INVALID_ARGUMENT,
                                   "no such option", "INVALID_OPTION", {}));
    EXPECT_EQ(Run(output, std::move(flags)), kExitFailed);
    EXPECT_THAT(err_, HasSubstr("INVALID_OPTION"));
    service_.AwaitEndOfStreams();
  }

  FakeEncoderService service_;
  const TempFolder folder_;
  std::string err_;
};

TEST_F(EncoderctlBulkTest, GoesOnWhereItBrokeOffAndGivesTheSameBytes) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  EXPECT_THAT(err_, IsEmpty());
  const std::string whole = Read(Path("whole.npy"));
  EXPECT_EQ(whole.size(), kNpyHeaderBytes + kTexts * 6 * sizeof(float));
  EXPECT_FALSE(std::filesystem::exists(Path("whole.npy.journal")));

  const int64_t before = service_.stream_texts();
  service_.BreakStreams(1 << 30, 40);
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_EQ(Read(Path("out.npy")), whole);
  service_.BreakStreams(0, 0);
  EXPECT_LE(service_.stream_texts() - before, kTexts + 4 * kWindow);
}

TEST_F(EncoderctlBulkTest, ALaterRunDoesNotDoFinishedWorkAgain) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  const int64_t before = service_.stream_texts();
  FailARun();
  EXPECT_THAT(err_, HasSubstr("DEVICE_FAULT"));
  const std::string half = Read(Path("out.npy"));
  EXPECT_GT(half.size(), static_cast<size_t>(kNpyHeaderBytes));
  EXPECT_EQ(half.substr(0, kNpyHeaderBytes),
            NpyHeader((half.size() - kNpyHeaderBytes) / 24, 6));
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("going on after "));
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
  EXPECT_LE(service_.stream_texts() - before, kTexts + kWindow);
}

TEST_F(EncoderctlBulkTest, ThrowsUnfinishedRowsOfOtherWorkAwayOnlyWhenAsked) {
  FailARun();
  const std::string half = Read(Path("out.npy"));
  const auto refuses = [&](const std::string& what,
                           std::vector<std::string> flags) {
    EXPECT_EQ(Run("out.npy", std::move(flags)), kExitFailed);
    EXPECT_THAT(err_, HasSubstr("rows of unfinished work, and " + what +
                                " changed since"));
    EXPECT_THAT(err_, HasSubstr("--resume=no starts anew"));
    EXPECT_EQ(Read(Path("out.npy")), half);
  };
  refuses("the options", {"--normalize=yes"});
  refuses("the options", {"--encoding=float16"});
  service_.SetPooling(v1::POOLING_CLS);
  refuses("the model", {});
  Write("in.jsonl", Read(Path("in.jsonl")) + "\"more\"\n");
  refuses("the input's size or time and the model", {});
  const int64_t before = service_.stream_texts();
  EXPECT_EQ(Run("out.npy", {"--resume=no"}), kExitOk) << err_;
  EXPECT_THAT(err_, IsEmpty());
  EXPECT_EQ(service_.stream_texts() - before, kTexts + 1);
}

TEST_F(EncoderctlBulkTest, OtherOutputsDoNotReplaceUnfinishedRows) {
  FailARun();
  const std::string half = Read(Path("out.npy"));
  EXPECT_EQ(Run("out.npy", {"--format=text"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("out.npy holds unfinished rows"));
  EXPECT_EQ(Read(Path("out.npy")), half);
}

TEST_F(EncoderctlBulkTest, AJournalWithoutItsRowsHoldsNothingUp) {
  for (const bool damaged : {false, true}) {
    FailARun();
    std::filesystem::remove(Path("out.npy"));
    if (damaged) Write("out.npy.journal", "no journal\n");
    EXPECT_EQ(Run("out.npy", {"--normalize=yes"}), kExitOk) << err_;
    EXPECT_THAT(err_, IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(Path("out.npy.journal")));
  }
}

TEST_F(EncoderctlBulkTest, KeepsAFinishedFileUntilThereIsARowInItsPlace) {
  const std::vector<std::string> int8 = {"--encoding=int8"};
  Write("none.jsonl", "\n\n");
  Write("bad.jsonl", "\"a b c d e f g\"\n\"one\"\n");
  Write("out.npy", "rows");
  Write("out.npy.scales.npy", "steps");
  EXPECT_EQ(Run("out.npy", int8, "none.jsonl"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("there are no texts"));
  EXPECT_THAT(err_, HasSubstr("out.npy is left as it was\n"));
  EXPECT_EQ(Run("out.npy", int8, "bad.jsonl"), kExitFailed);
  RefuseARun("out.npy", {"--encoding=int8", "--dimensions=9999"});
  EXPECT_EQ(Read(Path("out.npy")), "rows");
  EXPECT_EQ(Read(Path("out.npy.scales.npy")), "steps");
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy.journal")));
}

TEST_F(EncoderctlBulkTest, LeavesNoFileWhereThereWasNoneAndNoRowCame) {
  RefuseARun("out.npy", {});
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy")));
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy.journal")));
  EXPECT_THAT(err_, Not(HasSubstr("left as it was")));
}

TEST_F(EncoderctlBulkTest, ARunThatIsRefusedCostsNoHalfDoneWork) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  FailARun();
  RefuseARun("out.npy", {});
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("going on after "));
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
}

TEST_F(EncoderctlBulkTest, RowsOfOtherTextsAreNotGoneOnWith) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  FailARun();
  const std::string journal = Read(Path("out.npy.journal"));
  for (const std::string resume : {"yes", "no"}) {
    std::istringstream in(std::string(2 * kTexts, '\n'));
    std::ostringstream out, err;
    Environment environment{in, out, err};
    EXPECT_EQ(RunEncoderctl(
                  {"embed", "--target=" + service_.target(), "--on_error=skip",
                   "--resume=" + resume, "--output=" + Path("out.npy")},
                  environment),
              resume == "yes" ? kExitFailed : kExitOk);
    EXPECT_EQ(Read(Path("out.npy.journal")).empty(), resume == "no");
  }
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy.journal")));
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_THAT(err_, IsEmpty());
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
}

TEST_F(EncoderctlBulkTest, CallsADamagedJournalDamaged) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  FailARun();
  const std::string journal = Read(Path("out.npy.journal"));
  const std::string half = Read(Path("out.npy"));
  std::string flipped = journal;
  flipped[20] ^= 1;
  for (const std::string& damaged :
       {flipped, std::string(), std::string(400, '\0'),
        std::string("some other text\n"), journal.substr(0, 40)}) {
    Write("out.npy.journal", damaged);
    Write("out.npy", half);
    EXPECT_EQ(Run("out.npy"), kExitFailed);
    EXPECT_THAT(err_,
                HasSubstr("out.npy.journal is damaged: what is done of "));
    EXPECT_EQ(Read(Path("out.npy")), half);
    EXPECT_EQ(Run("out.npy", {"--resume=no"}), kExitOk) << err_;
    EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
  }
  std::string later = journal;
  later[later.rfind('\n', later.size() - 2) + 1] ^= 1;  // the last entry
  Write("out.npy.journal", later);
  Write("out.npy", half);
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("out.npy.journal is damaged from line "));
  EXPECT_THAT(err_, HasSubstr("going on after "));
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
}

TEST_F(EncoderctlBulkTest, ABlankLineIsNoRowAtTheEndAndABadTextBefore) {
  Write("in.jsonl", "\"one\"\n\"two\"\n\n");
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_EQ(Read(Path("out.npy")).substr(0, kNpyHeaderBytes), NpyHeader(2, 6));
  Write("in.jsonl", "\"one\"\n\n\"three\"\n");
  EXPECT_EQ(Run("out.npy"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("in.jsonl:2: INVALID_ARGUMENT: inputs[1] is a "
                              "blank line before others"));
  EXPECT_EQ(Run("out.npy", {"--on_error=skip"}), kExitOk) << err_;
  EXPECT_EQ(Read(Path("out.npy")).substr(0, kNpyHeaderBytes), NpyHeader(3, 6));
}

TEST_F(EncoderctlBulkTest, AHalfWrittenJournalOrALostOutputCostsNoWrongRow) {
  ASSERT_EQ(Run("whole.npy"), kExitOk) << err_;
  FailARun();
  const std::string journal = Read(Path("out.npy.journal"));
  Write("out.npy.journal", absl::StrCat(journal, "1999 99"));
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
  Write("out.npy.journal", journal);
  Write("out.npy", "short");
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_EQ(Read(Path("out.npy")), Read(Path("whole.npy")));
}

TEST_F(EncoderctlBulkTest, ABadTextIsNamedByItsLineAndSkippedWhenAsked) {
  Write("bad.jsonl",
        "\"one\"\n{\"text\": \"a b c d e f g\"}\n{\"other\": 1}\n\"four\"\n");
  EXPECT_EQ(Run("bad.npy", {}, "bad.jsonl"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("bad.jsonl:2: INVALID_ARGUMENT "
                              "(INPUT_TOO_LONG): inputs[1] has 9 tokens"));
  EXPECT_EQ(Read(Path("bad.npy")).substr(0, kNpyHeaderBytes), NpyHeader(1, 6));
  // What was done stays done; the bad one is met again, and passed over.
  EXPECT_EQ(Run("bad.npy", {"--on_error=skip"}, "bad.jsonl"), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("bad.jsonl:2: skipped: INVALID_ARGUMENT"));
  EXPECT_THAT(err_, HasSubstr("bad.jsonl:3: skipped: INVALID_ARGUMENT: "
                              "inputs[2] is neither a JSON string"));
  EXPECT_THAT(err_, HasSubstr("2 of 3 texts were skipped"));
  const std::string bytes = Read(Path("bad.npy"));
  EXPECT_EQ(bytes.substr(0, kNpyHeaderBytes), NpyHeader(4, 6));
  EXPECT_EQ(bytes.substr(kNpyHeaderBytes + 24, 48), std::string(48, '\0'));
}

TEST_F(EncoderctlBulkTest, ALineThatCannotBeReadCostsItsOwnRow) {
  const std::string endless(LineReader::kMaxLineBytes, 'x');
  Write("bad.jsonl", absl::StrCat("\"one\"\n{\"text\": two}\n\"", endless,
                                  "\"\n\"four\"\n"));
  EXPECT_EQ(Run("bad.npy", {}, "bad.jsonl"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("bad.jsonl:2: INVALID_ARGUMENT: inputs[1] is "
                              "invalid JSON at byte 11"));
  EXPECT_EQ(Run("bad.npy", {"--on_error=skip"}, "bad.jsonl"), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("bad.jsonl:2: skipped: INVALID_ARGUMENT"));
  EXPECT_THAT(err_, HasSubstr("bad.jsonl:3: skipped: INVALID_ARGUMENT: "
                              "inputs[2] is a line of 16777218 bytes"));
  EXPECT_EQ(Read(Path("bad.npy")).substr(0, kNpyHeaderBytes), NpyHeader(4, 6));
  // The same one by one.
  EXPECT_EQ(Run("out", {"--format=jsonl", "--on_error=skip"}, "bad.jsonl"),
            kExitOk)
      << err_;
  EXPECT_THAT(err_, HasSubstr("bad.jsonl:3: skipped: INVALID_ARGUMENT: "
                              "inputs[2] is a line of 16777218 bytes"));
  EXPECT_THAT(Read(Path("out")),
              HasSubstr("{\"index\":2,\"error\":{\"code\":"
                        "\"INVALID_ARGUMENT\",\"message\":\"inputs[2] is a "
                        "line of 16777218 bytes; the most is 16777216\"}}\n"));
  Write("bad.txt", absl::StrCat("one\n", endless, "x\n"));
  EXPECT_EQ(Run("out", {"--format=jsonl"}, "bad.txt"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("bad.txt:2: INVALID_ARGUMENT: inputs[1] is a "
                              "line of 16777217 bytes"));
}

TEST_F(EncoderctlBulkTest, ANumberThatNoDoubleHoldsCostsItsOwnRow) {
  Write("bad.jsonl", "\"one\"\n{\"text\": \"x\", \"score\": -1e400}\n1e999\n");
  EXPECT_EQ(Run("bad.npy", {"--on_error=skip"}, "bad.jsonl"), kExitOk) << err_;
  EXPECT_THAT(err_, HasSubstr("bad.jsonl:2: skipped: INVALID_ARGUMENT: "
                              "inputs[1] has a number that no double can"));
  EXPECT_THAT(err_, HasSubstr("2 of 3 texts were skipped"));
}

TEST_F(EncoderctlBulkTest, NeverWritesOverItsInput) {
  const std::string texts = Read(Path("in.jsonl"));
  std::filesystem::create_symlink(Path("in.jsonl"), Path("link.npy"));
  std::filesystem::create_hard_link(Path("in.jsonl"),
                                    Path("out.npy.scales.npy"));
  EXPECT_EQ(Run("in.jsonl", {"--format=npy"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("in.jsonl is the file of --input"));
  EXPECT_EQ(Run("in.jsonl", {"--format=jsonl"}), kExitUsage);
  EXPECT_EQ(Run("link.npy"), kExitUsage);
  EXPECT_EQ(Run("out.npy", {"--encoding=int8"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("out.npy.scales.npy, which goes with --output"));
  EXPECT_EQ(Read(Path("in.jsonl")), texts);
}

TEST_F(EncoderctlBulkTest, OneRunAtATimeWritesAFile) {
  ASSERT_EQ(Run("out.npy"), kExitOk) << err_;
  const std::string rows = Read(Path("out.npy"));
  {
    OutputLock other;
    ASSERT_TRUE(other.Take(Path("out.npy")).ok());
    EXPECT_EQ(Run("out.npy"), kExitFailed);
    EXPECT_THAT(err_, HasSubstr("out.npy is being written by another run"));
    EXPECT_EQ(Read(Path("out.npy")), rows);
    OutputLock lines;
    ASSERT_TRUE(lines.Take(Path("out.jsonl")).ok());
    EXPECT_EQ(Run("out.jsonl", {"--format=jsonl"}), kExitFailed);
    EXPECT_THAT(err_, HasSubstr("out.jsonl is being written by another run"));
  }
  EXPECT_FALSE(std::filesystem::exists(Path("out.jsonl")));
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
}

TEST_F(EncoderctlBulkTest, RefusesMoreInFlightThanAStreamHolds) {
  EXPECT_EQ(Run("out.npy", {"--in_flight=65"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--in_flight is 65; into an .npy at most 64"));
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy")));
}

TEST_F(EncoderctlBulkTest, SaysWhereTheOutputCannotBeWritten) {
  EXPECT_EQ(Run("none/out.npy"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("cannot open"));
}

}  // namespace
}  // namespace encoderd::ctl
