// encoderctl at a terminal and in scripts: progress, exit codes, flags without
// effect.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/encoderctl/access_flags.h"
#include "client/cpp/encoderctl/row_file.h"
#include "client/cpp/encoderctl/writer.h"
#include "gmock/gmock.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/client/encoderctl_fixture.h"

namespace encoderd::ctl {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(EncoderctlTest, ShowsNoProgressAmongResultsOnTheSameTerminal) {
  for (const bool out_is_terminal : {false, true}) {
    for (const std::string& output : {std::string("-"), folder_.Path("out")}) {
      std::istringstream in;
      std::ostringstream out, err;
      Environment environment{in, out, err};
      environment.out_is_terminal = out_is_terminal;
      environment.err_is_terminal = true;
      EXPECT_EQ(RunEncoderctl({"embed", "--progress=always", "--output", output,
                               "--target", service_.target(), "one"},
                              environment),
                kExitOk);
      const bool glued = out_is_terminal && output == "-";
      EXPECT_EQ(err.str().empty(), glued) << output << ": " << err.str();
    }
  }
}

TEST_F(EncoderctlTest, RefusesFlagsThatCannotTakeEffect) {
  EXPECT_EQ(Run({"embed", "--field=body", "one"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--field is for CSV and JSON; arguments are "
                              "plain texts"));
  EXPECT_EQ(Run({"embed", "--field=body"}, "one\n"), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("standard input is read as lines; add "
                              "--input_format=csv, tsv, json or jsonl"));
  const std::string file = File("in.txt", "one\n");
  EXPECT_EQ(Run({"tokenize", "--field=body", "--input", file}), kExitUsage);
  EXPECT_EQ(Run({"embed", "--input=-", "one"}, "two\n"), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("texts as arguments or --input, not both"));
  EXPECT_EQ(Run({"embed", "--input", file, "--input", file}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--input is given 2 times; give it once"));
  EXPECT_EQ(Run({"embed", "one", "--output=-", "--output=-"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--output is given 2 times; give it once"));
  EXPECT_EQ(service_.embed_calls(), 0);
}

TEST_F(EncoderctlTest, SkippingEveryTextIsNoSuccess) {
  const std::string bad = "a b c d e f g\n\na b c d e f g h\n";
  for (const char* name : {"out.jsonl", "out.npy"}) {
    for (const char* command : {"embed", "encode"}) {
      const std::string out = folder_.Path(absl::StrCat(command, name));
      const std::vector<std::string> run = {command, "--on_error=skip",
                                            "--output", out};
      EXPECT_EQ(Run(run, bad), kExitFailed) << out;
      EXPECT_THAT(err_, HasSubstr("3 of 3 texts were skipped"));
      EXPECT_EQ(Run(run, bad + "one\n"), kExitOk) << out << err_;
      EXPECT_THAT(err_, HasSubstr("3 of 4 texts were skipped"));
    }
  }
}

TEST_F(EncoderctlTest, AFailedRunSaysHowManyTextsItWrote) {
  const std::string texts = "one\ntwo\na b c d e f g\nthree\n";
  const std::string out = folder_.Path("out.jsonl");
  for (const bool embed : {true, false}) {
    EXPECT_EQ(Run({embed ? "embed" : "encode", "--batch_size=1",
                   "--in_flight=1", "--output", out},
                  texts),
              kExitFailed);
    EXPECT_THAT(err_,
                HasSubstr(embed ? "\nencoderctl embed: 2 texts are written; a "
                                  "run resumes only with an .npy\n"
                                : "\nencoderctl encode: 2 texts are "
                                  "written\n"));
    const std::string written = Read(out);
    EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 2);
  }
  EXPECT_EQ(Run({"embed", "--batch_size=1", "--in_flight=1"}, texts),
            kExitFailed);
  EXPECT_THAT(err_, Not(HasSubstr("are written")));
}

TEST_F(EncoderctlTest, SaysWhyAFileCannotBeOpened) {
  const std::string folder = folder_.Path(".");
  for (const char* format : {"text", "npy"}) {
    EXPECT_EQ(Run({"embed", "one", "--output", folder, "--format", format}),
              kExitFailed);
    EXPECT_THAT(err_, HasSubstr(": Is a directory\n"));
  }
  EXPECT_EQ(Run({"embed", "--input="}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--input is empty; name a file, or - for "
                              "standard input"));
  EXPECT_EQ(Run({"embed", "one", "--output="}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--output is empty; name a file, or - for "
                              "standard output"));
  const auto rows = RowFile::Open(folder, {"<f4", 1, 4}, 0);
  EXPECT_THAT(std::string(rows.status().message()),
              HasSubstr(": Is a directory"));
}

TEST_F(EncoderctlTest, SaysThatTheFolderOfItsRowsIsGone) {
  const std::string folder = folder_.Path("rows");
  std::filesystem::create_directory(folder);
  std::istringstream in;
  std::ostringstream out, err;
  const Environment environment{in, out, err};
  const auto writer = Writer::Open(folder + "/out.npy", true, environment);
  ASSERT_TRUE(writer.ok()) << writer.status();
  std::filesystem::remove_all(folder);
  const auto fails =
      IsError(absl::StatusCode::kNotFound,
              absl::StrCat("cannot write to ", folder,
                           "/out.npy: No such file or directory"));
  EXPECT_THAT((*writer)->WriteRows({1.0f, 2.0f}, 1, 2), fails);
  EXPECT_THAT((*writer)->Finish(), fails);
}

TEST_F(EncoderctlTest, LostOutputIsNoSuccess) {
  const std::string target = absl::StrCat("--target=", service_.target());
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"--version"},
                                             {"embed", "--help"},
                                             {"completion", "bash"},
                                             {"health", target},
                                             {"models", target},
                                             {"embed", "one", target}}) {
    std::istringstream in;
    std::ofstream full("/dev/full");
    std::ostringstream err;
    Environment environment{in, full, err};
    EXPECT_EQ(RunEncoderctl(command, environment), kExitFailed) << command[0];
    EXPECT_THAT(err.str(), HasSubstr("cannot write to ")) << command[0];
  }
}

TEST_F(EncoderctlTest, HelpsHoweverItIsAsked) {
  ASSERT_EQ(RunBare({"--help"}), kExitOk);
  const std::string overview = out_;
  for (const char* what : {"help", "--help", "-h"}) {
    ASSERT_EQ(RunBare({"help", what}), kExitOk) << err_;
    EXPECT_EQ(out_, overview);
  }
  ASSERT_EQ(RunBare({"embed", "--help=yes"}), kExitOk) << err_;
  EXPECT_THAT(out_, StartsWith("usage: encoderctl embed "));
  EXPECT_EQ(RunBare({"help", "embed", "foo"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("encoderctl help: takes one command\n"));
  EXPECT_EQ(RunBare({"embed", "-"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--input=- reads standard input, and a text "));
  EXPECT_EQ(RunBare({"models", "-"}), kExitUsage);
  EXPECT_THAT(err_, Not(HasSubstr("--input")));
}

TEST_F(EncoderctlTest, SaysOfSkippedTextsWhatTheCommandWrites) {
  ASSERT_EQ(RunBare({"embed", "--help"}), kExitOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("its row is all zeros"),
                          Not(HasSubstr("has no rows"))));
  ASSERT_EQ(RunBare({"encode", "--help"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("it has no rows"));
}

// The next line from a pipe; what came of it where it stays silent.
std::string ReadLine(int descriptor) {
  std::string line;
  pollfd input = {descriptor, POLLIN, 0};
  while (!absl::EndsWith(line, "\n") && poll(&input, 1, 20000) > 0) {
    char c = 0;
    if (read(descriptor, &c, 1) != 1) break;
    line += c;
  }
  return line;
}

TEST_F(EncoderctlTest, AnswersEachLineOfAPipeBeforeTheNextOneIsThere) {
  struct Live {
    std::vector<std::string> arguments;
    std::vector<std::string> pieces;  // each but the last has one answer
  };
  const std::vector<std::string> lines = {"one\n", "two\n\n", "three\nfo",
                                          "ur\n"};
  for (const Live& live : std::vector<Live>{
           {{"embed"}, lines},
           {{"embed", "--format=jsonl", "--batch_size=1"}, lines},
           {{"encode", "--format=jsonl"}, lines},
           {{"tokenize"}, lines},
           {{"embed", "--input_format=jsonl"},
            {"\"one\"\n", " \n\"two\"\n", "\n"}},
           {{"embed", "--input_format=csv"}, {"text\none\n", "two\n\n", "x\n"}},
           {{"embed", "--input_format=json"},
            {"[\"one\",\n", "\"two\"\n", "]"}}}) {
    int in[2], out[2];
    ASSERT_EQ(pipe(in), 0);
    ASSERT_EQ(pipe(out), 0);
    std::ostringstream unused, err;
    std::istringstream none;
    Environment environment{none, unused, err};
    environment.in_descriptor = in[0];
    environment.out_descriptor = out[1];
    std::vector<std::string> arguments = live.arguments;
    arguments.insert(arguments.end(),
                     {"--on_error=skip", "--target", service_.target()});
    if (arguments[0] == "tokenize") arguments.erase(arguments.end() - 3);
    int code = -1;
    std::thread run([&] { code = RunEncoderctl(arguments, environment); });
    for (size_t i = 0; i < live.pieces.size(); ++i) {
      const std::string& piece = live.pieces[i];
      EXPECT_EQ(write(in[1], piece.data(), piece.size()), piece.size());
      if (i + 1 == live.pieces.size()) break;
      EXPECT_THAT(ReadLine(out[0]), EndsWith("\n"))
          << live.arguments[0] << piece;
    }
    close(in[1]);
    run.join();
    EXPECT_EQ(code, kExitOk) << err.str();
    for (const int end : {in[0], out[0], out[1]}) close(end);
  }
}

TEST_F(EncoderctlTest, SaysHowManyTextsAreWholeOnAFullDisk) {
  EXPECT_EQ(Run({"embed", "--output=/dev/full", "one", "two"}), kExitFailed);
  EXPECT_EQ(err_,
            "encoderctl embed: DATA_LOSS: cannot write to /dev/full: No space "
            "left on device\nencoderctl embed: 0 texts are written\n");
  std::string texts;
  for (int i = 0; i < 5000; ++i) texts += "one\n";
  for (const char* name : {"out.txt", "out.jsonl"}) {
    const std::string out = folder_.Path(name);
    {
      const FileSizeLimit little(99990);
      EXPECT_EQ(Run({"embed", "--output", out}, texts), kExitFailed);
    }
    const std::string written = Read(out);
    EXPECT_EQ(written.size(), 99990);
    EXPECT_FALSE(absl::EndsWith(written, "\n"));
    EXPECT_THAT(err_,
                HasSubstr(absl::StrCat(
                    "\nencoderctl embed: ",
                    std::count(written.begin(), written.end(), '\n'),
                    " texts are written; the last line is incomplete\n")));
  }
}

// Another program may have made the pipe so.
TEST_F(EncoderctlTest, WaitsForRoomInAPipeThatDoesNotBlock) {
  int out[2] = {};
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  ASSERT_EQ(fcntl(out[1], F_SETFL, O_NONBLOCK), 0);
  std::string written;
  std::thread reader([&] {
    absl::SleepFor(absl::Milliseconds(50));  // the pipe may be full by then
    char some[4096];
    for (ssize_t n = 1; n > 0;) {
      n = read(out[0], some, sizeof(some));
      if (n > 0) written.append(some, n);
    }
  });
  std::string texts;
  for (int i = 0; i < 5000; ++i) texts += "one\n";
  std::istringstream in(texts);
  std::ostringstream unused, err;
  Environment environment{in, unused, err};
  environment.out_descriptor = out[1];
  EXPECT_EQ(
      RunEncoderctl({"embed", "--target", service_.target()}, environment),
      kExitOk)
      << err.str();
  close(out[1]);
  reader.join();
  close(out[0]);
  EXPECT_GT(written.size(), 1 << 17);  // twice what a pipe holds
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 5000);
}

TEST(InFlagsTest, NamesFlagsAndLeavesPathsAddressesAndGrpcAlone) {
  EXPECT_EQ(InFlags("it may want TLS (tls, ca_file)"),
            "it may want TLS (--tls, --ca_file)");
  EXPECT_EQ(InFlags("key_file \"/etc/key_file\" at tls:8400: set tls"),
            "--key_file \"/etc/key_file\" at tls:8400: set --tls");
  EXPECT_EQ(InFlags("--tls, my_tls and tls; gRPC says: no tls"),
            "--tls, my_tls and --tls; gRPC says: no tls");
}

}  // namespace
}  // namespace encoderd::ctl
