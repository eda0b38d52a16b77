// encoderctl at a terminal and in scripts: progress, exit codes, flags without
// effect.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/access_flags.h"
#include "client/cpp/encoderctl/row_file.h"
#include "gmock/gmock.h"
#include "tests/unit/client/encoderctl_fixture.h"

namespace encoderd::ctl {
namespace {

using ::testing::AllOf;
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
                              "--input_format=csv, json or jsonl"));
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
    EXPECT_THAT(err_, HasSubstr(embed ? "\n2 texts are written; a run resumes "
                                        "only with an .npy\n"
                                      : "\n2 texts are written\n"));
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
  EXPECT_THAT(out_,
              AllOf(HasSubstr("its row is 0"), Not(HasSubstr("has no rows"))));
  ASSERT_EQ(RunBare({"encode", "--help"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("it has no rows"));
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
