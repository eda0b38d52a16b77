// What encoderctl says of command lines, files and servers that it cannot use.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/support/held_port.h"
#include "tests/unit/client/encoderctl_fixture.h"

namespace encoderd::ctl {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(EncoderctlTest, SaysWhatIsWrongWithTheCommandLine) {
  EXPECT_EQ(RunBare({}), kExitUsage);
  EXPECT_EQ(RunBare({"frobnicate"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("unknown command \"frobnicate\"; available: "
                              "embed, encode, "));
  EXPECT_EQ(RunBare({"embde", "x"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("unknown command \"embde\"; did you mean "
                              "embed?"));
  EXPECT_EQ(RunBare({"--target=x:1", "embed"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("flags follow the command"));
  EXPECT_EQ(Run({"embed", "hi", "-o", "x"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("unknown flag -o; did you mean --output or "
                              "--on_error?"));
  EXPECT_EQ(service_.embed_calls(), 0);
  EXPECT_EQ(Run({"embed", "--encoding=int8", "one"}), kExitUsage);
  EXPECT_EQ(Run({"embed", "--format=npy", "one"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--format=npy needs --output=FILE"));
  EXPECT_EQ(Run({"embed", "--input=x", "one"}), kExitUsage);
  for (const char* target : {"127.0.0.1:99999", "http://localhost:8400"}) {
    EXPECT_EQ(RunBare({"embed", "one", "--target", target}), kExitUsage);
    EXPECT_THAT(err_, StartsWith(absl::StrCat("encoderctl embed: target \"",
                                              target, "\": ")));
  }
}

TEST_F(EncoderctlTest, KeepsExitCode2ForTheCommandLine) {
  EXPECT_EQ(Run({"embed", "--input=/no/such/file"}), kExitFailed);
  EXPECT_EQ(err_,
            "encoderctl embed: cannot read /no/such/file: No such file or "
            "directory\n");
  EXPECT_EQ(Run({"embed", "--output=/no/such/folder/x", "one"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("cannot write to /no/such/folder/x: No such file "
                              "or directory\n"));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{
           {"models", "--output=/no/such/folder/x"},
           {"inspect", "--json=/no/such/folder/x"}}) {
    EXPECT_EQ(Run(command), kExitFailed);
    EXPECT_EQ(err_, absl::StrCat("encoderctl ", command[0],
                                 ": cannot write to /no/such/folder/x: No such "
                                 "file or directory\n"));
  }
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{
           {"embed"},
           {"embed", "--output=" + folder_.Path("new.npy")},
           {"tokenize"},
           {"bench", "--input=-"}}) {
    EXPECT_EQ(Run(command, ""), kExitFailed) << command[0];
    EXPECT_THAT(err_, HasSubstr("there are no texts to work on: give them as "
                                "arguments"));
  }
}

TEST_F(EncoderctlTest, ReadsTheSameTextsFromEveryFormat) {
  const std::string lines = File("in.txt", "one\ntwo, \"words\"\n");
  ASSERT_EQ(Run({"embed", "--input", lines}), kExitOk) << err_;
  const std::string plain = out_;
  const std::string csv = "id,body\r\n1,one\r\n2,\"two, \"\"words\"\"\"\r\n";
  const std::string json = "[{\"body\": \"one\"},\n \"two, \\\"words\\\"\"]\n";
  for (const std::string& file : {File("in.csv", csv), File("in.json", json)}) {
    ASSERT_EQ(Run({"embed", "--input", file, "--field=body"}), kExitOk) << err_;
    EXPECT_EQ(out_, plain) << file;
    const std::string npy = folder_.Path("rows.npy");
    ASSERT_EQ(Run({"embed", "--input", file, "--field=body", "--output", npy}),
              kExitOk)
        << err_;
    EXPECT_THAT(NpyValues(Read(npy)),
                SizeIs(2 * FakeEncoderService::kHiddenSize));
  }
  ASSERT_EQ(Run({"embed", "--input_format=csv", "--field=body"}, csv), kExitOk);
  EXPECT_EQ(out_, plain);
  EXPECT_EQ(Run({"embed", "--input", File("in.csv", csv)}), kExitUsage);
  EXPECT_THAT(
      err_,
      HasSubstr("in.csv: the first row names no column \"text\"; "
                "available: \"id\", \"body\"; name one of them with "
                "--field; if these are texts, put a header before them\n"));
  EXPECT_EQ(Run({"embed", "--input", File("in.parquet", "")}), kExitUsage);
  EXPECT_THAT(err_,
              HasSubstr("in.parquet, a Parquet file: convert it to .csv or "
                        ".jsonl, such as "));
}

TEST_F(EncoderctlTest, NamesTheRowThatIsToBlame) {
  const std::string csv =
      File("long.csv", "text\nshort\n\"a b\nc d e f g h\"\n");
  EXPECT_EQ(Run({"embed", "--input", csv}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("long.csv: row 2: INVALID_ARGUMENT "
                              "(INPUT_TOO_LONG): inputs[1] has 9 tokens"));
}

TEST_F(EncoderctlTest, NamesTheElementWhereAnArrayIsBroken) {
  const std::string json = File("bad.json", "[\"one\" \"two\"]");
  for (const std::string command : {"embed", "similarity"}) {
    EXPECT_EQ(Run({command, "--input", json}), kExitFailed);
    EXPECT_EQ(err_,
              absl::StrCat("encoderctl ", command, ": INVALID_ARGUMENT: ", json,
                           ": element 2: invalid JSON at byte 8: "
                           "expected a comma or the array's end, ]\n"));
  }
}

TEST_F(EncoderctlTest, SaysThatAFilesNameIsUsedAsAText) {
  const std::string file = File("in.txt", "one\n");
  ASSERT_EQ(Run({"embed", file}), kExitOk) << err_;
  EXPECT_EQ(err_, absl::StrCat("encoderctl embed: note: \"", file,
                               "\" is used as a text; --input=", file,
                               " reads the file\n"));
}

TEST_F(EncoderctlTest, SaysThatAFileThatIsNotThereIsUsedAsAText) {
  ASSERT_EQ(Run({"embed", "texts.jsonl"}), kExitOk) << err_;
  EXPECT_EQ(err_,
            "encoderctl embed: note: \"texts.jsonl\" is used as a text; "
            "--input=FILE reads a file, and there is none of this name\n");
  ASSERT_EQ(Run({"embed", "What is in texts.jsonl", "a.b"}), kExitOk);
  EXPECT_EQ(err_, "");
}

TEST_F(EncoderctlTest, DoesNotOverwriteTheFileThatTheShellOpenedForInput) {
  const std::string file = File("in.txt", "one\ntwo\n");
  const std::string link = folder_.Path("link.txt");
  std::filesystem::create_symlink(file, link);
  const auto run = [&](std::vector<std::string> arguments) {
    const int descriptor = open(file.c_str(), O_RDONLY);
    std::istringstream unused;
    std::ostringstream out, err;
    Environment environment{unused, out, err};
    environment.in_descriptor = descriptor;
    arguments.push_back("--target=" + service_.target());
    const int code = RunEncoderctl(arguments, environment);
    close(descriptor);
    err_ = err.str();
    return code;
  };
  for (const std::string& output : {file, link}) {
    for (const std::string format : {"text", "jsonl", "npy"}) {
      EXPECT_EQ(run({"embed", "--output", output, "--format", format}),
                kExitUsage);
      EXPECT_THAT(err_, HasSubstr("--output=" + output +
                                  " is the file of standard input; name "
                                  "another\n"));
      EXPECT_EQ(Read(file), "one\ntwo\n");
    }
  }
  EXPECT_EQ(run({"embed", "--input=-", "--output", file}), kExitUsage);
  EXPECT_EQ(run({"tokenize", "--output", file}), kExitUsage);
  EXPECT_EQ(Read(file), "one\ntwo\n");
  EXPECT_EQ(run({"embed", "--output", folder_.Path("other.txt")}), kExitOk);
  // Nothing is read from there.
  EXPECT_EQ(run({"embed", "--output", file, "one"}), kExitOk) << err_;
}

TEST_F(EncoderctlTest, DoesNotAppendToTheFileThatItReads) {
  const std::string file = File("in.txt", "one\ntwo\n");
  const auto run = [&](std::vector<std::string> arguments, int in) {
    const int descriptor = open(file.c_str(), O_WRONLY | O_APPEND);
    std::istringstream unused;
    std::ostringstream out, err;
    Environment environment{unused, out, err};
    environment.in_descriptor = in;
    environment.out_descriptor = descriptor;
    arguments.push_back("--target=" + service_.target());
    const int code = RunEncoderctl(arguments, environment);
    close(descriptor);
    err_ = err.str();
    return code;
  };
  for (const std::string command :
       {"embed", "encode", "tokenize", "similarity", "bench"}) {
    EXPECT_EQ(run({command, "--input", file}, -1), kExitUsage);
    EXPECT_THAT(err_, HasSubstr(": standard output is the file of --input; "
                                "redirect it to another\n"));
    EXPECT_EQ(Read(file), "one\ntwo\n");
  }
  const int in = open(file.c_str(), O_RDONLY);
  EXPECT_EQ(run({"tokenize"}, in), kExitUsage);
  EXPECT_THAT(err_, HasSubstr(": standard output is the file of standard "
                              "input; redirect it to another\n"));
  EXPECT_EQ(run({"tokenize", "one"}, in), kExitOk) << err_;
  EXPECT_EQ(run({"health"}, in), kExitOk) << err_;
  close(in);
}

TEST_F(EncoderctlTest, FailsWhereTheOutputCannotBeWritten) {
  EXPECT_EQ(Run({"embed", "--output=/dev/full", "one"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("cannot write to /dev/full"));
}

TEST_F(EncoderctlTest, SaysWhatToDoWhereNoServerListens) {
  const HeldPort port;
  const std::string target = absl::StrCat("127.0.0.1:", port.port());
  for (const std::string command : {"health", "models", "inspect"}) {
    EXPECT_EQ(RunBare({command, "--target", target}), kExitFailed);
    EXPECT_EQ(err_,
              absl::StrCat("encoderctl ", command,
                           ": UNAVAILABLE: no server is listening at ", target,
                           "; start encoderd there, or correct the "
                           "target (--target or ENCODERD_TARGET)\n"));
  }
}

TEST_F(EncoderctlTest, SaysThatNoServerListensInHoweverLittleTime) {
  const HeldPort port;
  const std::string target = absl::StrCat("127.0.0.1:", port.port());
  for (const char* timeout : {"1ms", "300ms"}) {
    EXPECT_EQ(
        RunBare({"embed", "one", "--target", target, "--timeout", timeout}),
        kExitFailed);
    EXPECT_THAT(err_, AllOf(HasSubstr("no server is listening at " + target),
                            Not(HasSubstr("raise --timeout"))));
  }
}

TEST_F(EncoderctlTest, NamesTheAddressAndTheTimeOfACallWithoutAnAnswer) {
  EXPECT_EQ(Run({"embed", "--timeout=50ms", "~~never"}), kExitFailed);
  EXPECT_EQ(err_, absl::StrCat(
                      "encoderctl embed: DEADLINE_EXCEEDED: no response from ",
                      service_.target(), " within 50ms; raise --timeout\n"));
}

TEST_F(EncoderctlTest, NamesTheFlagForTheFieldOfTheRequest) {
  const auto fail = [this](const std::string& field, const std::string& words) {
    service_.FailNext(
        1, FakeError(grpc::StatusCode::INVALID_ARGUMENT,
                     absl::StrCat(field, words), "INVALID_OPTION", {}, field));
    EXPECT_EQ(Run({"embed", "one"}), kExitFailed);
  };
  fail("options.dimensions", " is 999; this model has 6");
  EXPECT_EQ(err_,
            "encoderctl embed: INVALID_ARGUMENT (INVALID_OPTION): --dimensions "
            "is 999; this model has 6\n");
  fail("options.windows.overlap", " is 9; windows share at most 3 tokens");
  EXPECT_THAT(err_, HasSubstr(": --windows is 9; windows share"));
  fail("options.ranges", " are set");
  EXPECT_THAT(err_, HasSubstr(": options.ranges are set"));
  EXPECT_EQ(Run({"encode", "--layer=9", "one"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr(": --layer is 9; "));
  EXPECT_EQ(Run({"inspect", "--first_row=99"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr(": --first_row is 99\n"));
  EXPECT_EQ(Run({"embed", "--help=embed"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("usage: encoderctl embed "));
}

TEST_F(EncoderctlTest, RefusesFlagsThatExcludeEachOther) {
  for (const std::string command : {"embed", "similarity", "bench"}) {
    EXPECT_EQ(Run({command, "--windows=2", "--truncate=end", "a", "b"}),
              kExitUsage);
    EXPECT_THAT(err_, HasSubstr("--windows and --truncate are both given; "));
  }
  EXPECT_EQ(Run({"encode", "--before_norm", "one"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--before_norm needs --layer=0\n"));
  EXPECT_EQ(service_.embed_calls(), 0);
}

TEST_F(EncoderctlTest, NotesThatAFlagAfterTwoDashesIsUsedAsAText) {
  ASSERT_EQ(RunBare({"tokenize", "--target", service_.target(), "--", "one",
                     "--format=jsonl", "--two"}),
            kExitOk)
      << err_;
  EXPECT_EQ(err_,
            "encoderctl tokenize: note: \"--format=jsonl\" follows -- and is "
            "used as a text; flags go before --\n");
  EXPECT_THAT(Lines(), SizeIs(3));
}

TEST_F(EncoderctlTest, NamesOnlyFlagsThatTheCommandHas) {
  EXPECT_EQ(Run({"encode", "a b c d e f g"}), kExitFailed);
  EXPECT_THAT(err_, AllOf(HasSubstr("; --truncate=end cuts it, "
                                    "--on_error=skip passes over such texts"),
                          Not(HasSubstr("--windows"))));
  EXPECT_EQ(Run({"similarity", "one", "a b c d e f g"}), kExitFailed);
  EXPECT_THAT(err_, EndsWith("; --truncate=end cuts it, --windows=16 averages "
                             "windows of it\n"));
  EXPECT_EQ(Run({"tokenize"}, "caf\xe9\n"), kExitFailed);
  EXPECT_THAT(err_, EndsWith("at byte 3; if the file has another encoding: "
                             "iconv -f ENCODING -t UTF-8 FILE\n"));
}

}  // namespace
}  // namespace encoderd::ctl
