// encoderctl embed into an .npy: bad texts, files, one writer at a time.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/line_reader.h"
#include "client/cpp/encoderctl/output_file.h"
#include "client/cpp/encoderctl/row_file.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/patience.h"
#include "tests/unit/client/bulk_runs.h"

namespace encoderd::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using EncoderctlBulkTest = BulkRuns;

// The last line had no end when it was used, and is longer now.
// What a kill leaves between any two steps of a run.
TEST_F(EncoderctlBulkTest, KeepsAFinishedFileUntilThereIsARowInItsPlace) {
  const std::vector<std::string> int8 = {"--encoding=int8"};
  Write("none.jsonl", "\n\n");
  Write("bad.jsonl", "\"a b c d e f g\"\n\"one\"\n");
  Write("out.npy", "rows");
  const std::string steps = NpyHeader(1, 1) + "step";
  Write("out.npy.scales.npy", steps);
  EXPECT_EQ(Run("out.npy", int8, "none.jsonl"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("none.jsonl has no texts"));
  EXPECT_THAT(err_, HasSubstr("out.npy is left as it was\n"));
  EXPECT_EQ(Run("out.npy", int8, "bad.jsonl"), kExitFailed);
  RefuseARun("out.npy", {"--encoding=int8", "--dimensions=9999"});
  EXPECT_EQ(Read(Path("out.npy")), "rows");
  EXPECT_EQ(Read(Path("out.npy.scales.npy")), steps);
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy.resume")));
}

TEST_F(EncoderctlBulkTest, NoFileOfAPersonsOwnIsTakenForScales) {
  for (const std::string& own :
       {std::string("precious"), NpyHeader(2, 3) + std::string(24, 'x')}) {
    Write("out.npy.scales.npy", own);
    EXPECT_EQ(Run("out.npy", {"--encoding=int8"}), kExitFailed);
    EXPECT_THAT(err_, HasSubstr("out.npy.scales.npy is not what encoderctl "
                                "wrote there; move or remove it"));
    EXPECT_EQ(Read(Path("out.npy.scales.npy")), own);
  }
}

TEST_F(EncoderctlBulkTest, AnotherEncodingLeavesNoScalesOfTheOldRows) {
  const RowLayout steps{"<f4", 1, 4};
  const auto write = [&](const std::string& name, const RowLayout& layout,
                         int64_t rows) {
    const auto file = RowFile::Open(Path(name), layout, 0);
    ASSERT_TRUE(file.ok()) << file.status();
    const std::string bytes(rows * layout.row_bytes(), 'x');
    ASSERT_TRUE((*file)->Append(bytes).ok());
  };
  const auto scales = [this] {
    return std::filesystem::exists(Path("out.npy.scales.npy"));
  };
  for (const char* descr : {"|i1", "|u1"}) {
    write("out.npy", {descr, 6, 1}, 5);
    write("out.npy.scales.npy", steps, 5);
    ASSERT_EQ(Run("out.npy"), kExitOk) << err_;
    EXPECT_FALSE(scales()) << descr;
  }
  // Not of these rows, or no scales: whose they are is not known.
  write("out.npy", {"|i1", 6, 1}, 4);
  write("out.npy.scales.npy", steps, 5);
  ASSERT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_TRUE(scales());
  write("out.npy", {"|i1", 6, 1}, 5);
  write("out.npy.scales.npy", {"<f2", 1, 2}, 5);
  ASSERT_EQ(Run("out.npy"), kExitOk) << err_;
  EXPECT_TRUE(scales());
}

TEST_F(EncoderctlBulkTest, AsksToCorrectAFileThatCannotBeReadOn) {
  std::string csv = "text\n", json = "[";
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&csv, "text ", i, "\n");
    absl::StrAppend(&json, "\"text ", i, "\",");
  }
  Write("in.csv", csv + "\"no end\n");
  Write("in.json", json);
  for (const char* input : {"in.csv", "in.json"}) {
    EXPECT_EQ(Run(absl::StrCat(input, ".npy"), {}, input), kExitFailed);
    EXPECT_THAT(err_, HasSubstr(" texts are done; to resume, correct the file "
                                "and repeat the command\n"));
  }
}

TEST_F(EncoderctlBulkTest, KeepsUnfinishedRowsWhereTheInputCannotBeRead) {
  FailARun();
  const std::string half = Read(Path("out.npy"));
  std::istringstream unused;
  std::ostringstream out, err;
  Environment environment{unused, out, err};
  environment.in_descriptor = open("/", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(RunEncoderctl({"embed", "--target", service_.target(), "--output",
                           Path("out.npy")},
                          environment),
            kExitFailed);
  close(environment.in_descriptor);
  EXPECT_EQ(err.str(),
            absl::StrCat("encoderctl embed: DATA_LOSS: cannot read standard "
                         "input: Is a directory\nencoderctl embed: ",
                         Path("out.npy"), " is left as it was\n"));
  EXPECT_EQ(Read(Path("out.npy")), half);
}

TEST_F(EncoderctlBulkTest, LeavesNoFileWhereThereWasNoneAndNoRowCame) {
  RefuseARun("out.npy", {});
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy")));
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy.resume")));
  EXPECT_THAT(err_, Not(HasSubstr("left as it was")));
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
  EXPECT_THAT(err_, HasSubstr("2 of 4 texts were skipped"));
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
  EXPECT_THAT(err_,
              HasSubstr("--in_flight is 65; with an .npy it is at most 64"));
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy")));
}

TEST_F(EncoderctlBulkTest, SaysWhereTheOutputCannotBeWritten) {
  EXPECT_EQ(Run("none/out.npy"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("cannot write to "));
}

TEST_F(EncoderctlBulkTest, LeavesNoFileWhereTheDiskTakesNoRow) {
  {
    const FileSizeLimit none(0);
    EXPECT_EQ(Run("out.npy"), kExitFailed);
  }
  EXPECT_EQ(err_, "encoderctl embed: DATA_LOSS: cannot write to " +
                      Path("out.npy.resume") + ": File too large\n");
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy")));
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy.resume")));
  EXPECT_EQ(Run("out.npy"), kExitOk) << err_;
}

TEST_F(EncoderctlBulkTest, ARunThatWritesNoRowKeepsTheScalesOfTheOldOnes) {
  ASSERT_EQ(Run("out.npy", {"--encoding=int8"}), kExitOk) << err_;
  const std::string scales = Read(Path("out.npy.scales.npy"));
  {
    const FileSizeLimit none(0);
    EXPECT_EQ(Run("out.npy", {"--resume=no"}), kExitFailed);
  }
  EXPECT_THAT(err_, HasSubstr("is left as it was"));
  EXPECT_EQ(Read(Path("out.npy.scales.npy")), scales);
}

TEST_F(EncoderctlBulkTest, NamesTheModelThatIsNotServed) {
  EXPECT_EQ(Run("out.npy", {"--model=other"}), kExitFailed);
  EXPECT_EQ(err_,
            "encoderctl embed: NOT_FOUND (MODEL_NOT_FOUND): --model \"other\" "
            "is not served here; available: fake\n");
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy")));
}

// Between two replicas, or just before a restart.
class ChangesItsModel : public encoderd::testing::FakeEncoderService {
 public:
  grpc::Status GetModel(grpc::ServerContext* context,
                        const v1::GetModelRequest* request,
                        v1::Model* model) override {
    const grpc::Status status =
        FakeEncoderService::GetModel(context, request, model);
    model->set_fingerprint("another");
    return status;
  }
};

TEST_F(EncoderctlBulkTest, NoRowIsOfAModelOtherThanTheDescribedOne) {
  const ChangesItsModel service;
  EXPECT_EQ(Run("out.npy", {"--target=" + service.target()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("settings changed during the job: "));
  EXPECT_THAT(err_, HasSubstr(" and was another; the vectors before and after "
                              "must not be mixed"));
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy")));
}

TEST_F(EncoderctlBulkTest, FilesThatGoWithTheOutputAreNoOtherNamesOfIt) {
  for (const std::string side : {".resume", ".scales.npy"}) {
    for (const bool hard : {false, true}) {
      const std::string path = Path("out.npy" + side);
      Write("out.npy", "");
      if (hard) {
        std::filesystem::create_hard_link(Path("out.npy"), path);
      } else {
        std::filesystem::create_symlink("out.npy", path);
      }
      EXPECT_EQ(Run("out.npy", {"--encoding=int8"}), kExitFailed);
      EXPECT_THAT(err_, HasSubstr(path +
                                  ", which goes with --output, is the same "
                                  "file as " +
                                  Path("out.npy") + "; remove it"));
      EXPECT_EQ(Read(Path("out.npy")), "");
      std::filesystem::remove(path);
    }
  }
  Write("out.npy.resume", "");
  std::filesystem::create_hard_link(Path("out.npy.resume"),
                                    Path("out.npy.scales.npy"));
  EXPECT_EQ(Run("out.npy", {"--encoding=int8"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("out.npy.resume, which goes with --output, is "
                              "the same file as " +
                              Path("out.npy.scales.npy")));
}

TEST_F(EncoderctlBulkTest, FilesThatGoWithTheOutputHaveOneWriterEach) {
  for (const std::string side : {".resume", ".scales.npy"}) {
    OutputLock other;  // of a run into that file
    ASSERT_TRUE(other.Take(Path("out.npy" + side)).ok());
    EXPECT_EQ(Run("out.npy", {"--encoding=int8"}), kExitFailed);
    EXPECT_THAT(err_, HasSubstr(Path("out.npy" + side) +
                                " is being written by another run"));
    EXPECT_FALSE(std::filesystem::exists(Path("out.npy")));
  }
  EXPECT_EQ(Run("out.npy", {"--encoding=int8"}), kExitOk) << err_;
}

TEST_F(EncoderctlBulkTest, WritesThroughNoLinkThatGoesWithTheOutput) {
  for (const std::string side : {".resume", ".scales.npy"}) {
    for (const bool dangling : {false, true}) {
      const std::string path = Path("out.npy" + side);
      std::filesystem::remove(Path("victim"));
      if (!dangling) Write("victim", NpyHeader(0, 24, "|u1"));
      std::filesystem::create_symlink("victim", path);
      EXPECT_EQ(Run("out.npy", {"--encoding=int8", "--resume=no"}),
                kExitFailed);
      EXPECT_THAT(err_, HasSubstr(path + " is a symbolic link; remove it"));
      EXPECT_EQ(Read(Path("victim")), dangling ? "" : NpyHeader(0, 24, "|u1"));
      EXPECT_EQ(std::filesystem::exists(Path("victim")), !dangling);
      EXPECT_FALSE(std::filesystem::exists(Path("out.npy")));
      std::filesystem::remove(path);
    }
  }
}

TEST_F(EncoderctlBulkTest, WritesTheRowOfALineBeforeAPipeGivesTheNext) {
  PipedRun run(service_.target(), Path("out.npy"));
  for (int rows = 1; rows < 4; ++rows) {
    run.Give("one\n");
    EXPECT_TRUE(Eventually([&] {
      return Read(Path("out.npy")).substr(0, kNpyHeaderBytes) ==
             NpyHeader(rows, 6);
    })) << rows;
  }
  EXPECT_EQ(run.End(), kExitOk) << run.err();
}

TEST_F(EncoderctlBulkTest, RefusesAnOutputThatIsNoRegularFile) {
  ASSERT_EQ(mkfifo(Path("out.npy").c_str(), 0600), 0);
  EXPECT_EQ(Run("out.npy"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr(Path("out.npy") + " is not a regular file"));
  EXPECT_FALSE(std::filesystem::exists(Path("out.npy.resume")));
  EXPECT_TRUE(std::filesystem::is_fifo(Path("out.npy")));
}

}  // namespace
}  // namespace encoderd::ctl
