// What the commands of encoderctl do, against the fake service.
#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cpp/encoderctl/commands.h"
#include "client/cpp/encoderctl/npy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/encoderctl_fixture.h"

namespace encoderd::ctl {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using encoderd::testing::FakeVector;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

TEST_F(EncoderctlTest, EmbedsItsArgumentsAsText) {
  ASSERT_EQ(Run({"embed", "one", "two words"}), kExitOk) << err_;
  ASSERT_THAT(Lines(), SizeIs(2));
  const std::vector<std::string> values = absl::StrSplit(Lines()[1], ' ');
  std::vector<float> floats;
  for (const std::string& value : values) floats.push_back(std::stof(value));
  EXPECT_EQ(floats, FakeVector("two words"));
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(EncoderctlTest, EmbedsStandardInputAsJsonLines) {
  ASSERT_EQ(
      Run({"embed", "--format=jsonl", "--batch_size=1"}, "one\ntwo words\n"),
      kExitOk)
      << err_;
  ASSERT_THAT(Lines(), SizeIs(2));
  EXPECT_THAT(Lines()[1],
              StartsWith("{\"index\":1,\"token_count\":4,\"truncated\":false,"
                         "\"windows\":0,\"embedding\":["));
}

TEST_F(EncoderctlTest, WritesAnNpyOfAFile) {
  std::string lines;
  for (int i = 0; i < 300; ++i) absl::StrAppend(&lines, "text ", i, "\n");
  const std::string out = File("out.npy", "");
  ASSERT_EQ(Run({"embed", absl::StrCat("--input=", File("in.txt", lines)),
                 "--format=npy", absl::StrCat("--output=", out)}),
            kExitOk)
      << err_;
  const std::string bytes = Read(out);
  EXPECT_EQ(bytes.substr(0, kNpyHeaderBytes),
            NpyHeader(300, FakeEncoderService::kHiddenSize));
  const std::vector<float> values = NpyValues(bytes);
  ASSERT_THAT(values, SizeIs(300 * FakeEncoderService::kHiddenSize));
  const std::vector<float> last(values.end() - FakeEncoderService::kHiddenSize,
                                values.end());
  EXPECT_EQ(last, FakeVector("text 299"));
}

TEST_F(EncoderctlTest, NamesTheLineThatIsToBlameAndKeepsWhatCameBefore) {
  std::string lines;
  for (int i = 0; i < 70; ++i) absl::StrAppend(&lines, "text ", i, "\n");
  lines += "a b c d e f g\n";
  const std::string in = File("long.txt", lines);
  const std::string out = File("partial.npy", "");
  EXPECT_EQ(Run({"embed", "--input", in, "--format=npy", "--output", out}),
            kExitFailed);
  EXPECT_EQ(err_,
            absl::StrCat("encoderctl embed: ", in,
                         ":71: INVALID_ARGUMENT (INPUT_TOO_LONG): inputs[70] "
                         "has 9 tokens; this model takes at most 8; "
                         "--truncate=end cuts it, --windows=16 averages "
                         "windows of it, --on_error=skip passes over such "
                         "texts\nencoderctl embed: 70 texts are done; to "
                         "resume, correct this text and repeat the command\n"));
  EXPECT_EQ(Read(out).substr(0, kNpyHeaderBytes),
            NpyHeader(70, FakeEncoderService::kHiddenSize));
  EXPECT_EQ(Run({"embed", "--input", in}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("long.txt:71: INVALID_ARGUMENT"));
}

TEST_F(EncoderctlTest, NamesAnEmptyLineAndOneThatIsNotUtf8) {
  EXPECT_EQ(Run({"embed"}, "one\n\nthree\n"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("standard input:2: INVALID_ARGUMENT "
                              "(EMPTY_INPUT)"));
  EXPECT_EQ(Run({"tokenize"}, "one\nab\xff\n"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("standard input:2: INVALID_ARGUMENT "
                              "(INVALID_UTF8): inputs[1] is not valid UTF-8 at "
                              "byte 2"));
}

TEST_F(EncoderctlTest, CutsTextsOnlyWhenAsked) {
  ASSERT_EQ(Run({"embed", "--truncate=end", "--format=jsonl", "a b c d e f g"}),
            kExitOk)
      << err_;
  EXPECT_THAT(out_, HasSubstr("\"token_count\":9,\"truncated\":true"));
}

TEST_F(EncoderctlTest, SaysWhichTextsWereCutOrComputedInWindows) {
  ASSERT_EQ(Run({"embed", "--truncate=end", "a b c d e f g", "one"}), kExitOk);
  EXPECT_EQ(err_, "encoderctl embed: 1 text was cut to max_len\n");
  ASSERT_EQ(Run({"embed", "--windows=2", "--format=jsonl", "a b c d e f g",
                 "one", "a b c d e f g h"}),
            kExitOk)
      << err_;
  EXPECT_EQ(err_, "encoderctl embed: 2 texts were computed in windows\n");
  EXPECT_THAT(Lines()[0], HasSubstr("\"truncated\":false,\"windows\":2,"));
  EXPECT_THAT(Lines()[1], HasSubstr("\"windows\":0,"));
  EXPECT_EQ(service_.last_options().windows().overlap(), 2u);
  const std::string out = File("windows.npy", "");
  ASSERT_EQ(Run({"embed", "--windows=2", "--output", out, "a b c d e f g"}),
            kExitOk);
  EXPECT_EQ(err_, "encoderctl embed: 1 text was computed in windows\n");
}

TEST_F(EncoderctlTest, SkipsBadTextsWhenAskedAndNamesThem) {
  ASSERT_EQ(Run({"embed", "--on_error=skip", "--format=jsonl"},
                "one\na b c d e f g\nthree\n"),
            kExitOk)
      << err_;
  ASSERT_THAT(Lines(), SizeIs(3));
  EXPECT_EQ(Lines()[1],
            "{\"index\":1,\"error\":{\"code\":\"INVALID_ARGUMENT\","
            "\"message\":\"inputs[1] has 9 tokens; this model takes at most "
            "8\",\"reason\":\"INPUT_TOO_LONG\"}}");
  EXPECT_THAT(
      err_, StartsWith(
                "encoderctl embed: standard input:2: skipped: INVALID_ARGUMENT "
                "(INPUT_TOO_LONG): inputs[1] has 9 tokens"));
  EXPECT_THAT(err_, HasSubstr("encoderctl embed: 1 of 3 texts was skipped\n"));
  ASSERT_EQ(Run({"embed", "--on_error=skip"}, "one\n\nthree\n"), kExitOk);
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n');
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_EQ(lines[1], "");
  EXPECT_THAT(err_, HasSubstr("1 of 3 texts was skipped; each is an empty "
                              "line, which numpy.loadtxt drops\n"));
  const std::string out = File("skipped.npy", "");
  ASSERT_EQ(Run({"encode", "--on_error=skip", "--format=npy", "--output", out},
                "one\n\ntwo words\n"),
            kExitOk)
      << err_;
  EXPECT_THAT(err_,
              HasSubstr("1 of 3 texts was skipped; such texts have no rows\n"));
  EXPECT_EQ(Read(out).substr(0, kNpyHeaderBytes),
            NpyHeader(7, FakeEncoderService::kHiddenSize));
}

TEST_F(EncoderctlTest, SendsTextsAgainInCallsThatTheServerTakes) {
  service_.SetMaxInputs(3);
  std::vector<int> sizes;
  for (const char* format : {"text", "jsonl"}) {
    ASSERT_EQ(Run({"embed", "--batch_size=100", "--format", format},
                  "a\nb\nc\nd\ne\nf\ng\n"),
              kExitOk)
        << err_;
    EXPECT_THAT(Lines(), SizeIs(7));
    sizes.insert(sizes.end(), {7, 3, 3, 1});
    EXPECT_THAT(service_.call_sizes(), UnorderedElementsAreArray(sizes));
  }
}

TEST_F(EncoderctlTest, PassesTheOptionsOfEncodeOn) {
  ASSERT_EQ(Run({"encode", "--layer=0", "--before_norm",
                 "--span=without_special_tokens", "one"}),
            kExitOk)
      << err_;
  EXPECT_TRUE(service_.last_encode().before_norm());
  EXPECT_EQ(service_.last_encode().span(),
            v1::TOKEN_SPAN_WITHOUT_SPECIAL_TOKENS);
  EXPECT_EQ(service_.last_encode().layer(), 0u);
}

TEST_F(EncoderctlTest, PassesTheOptionsOfEmbedOn) {
  ASSERT_EQ(Run({"embed", "--normalize=no", "--pooling=last_token",
                 "--dimensions=2", "--prompt_name=query", "one"}),
            kExitOk)
      << err_;
  const v1::EmbedOptions sent = service_.last_options();
  EXPECT_TRUE(sent.has_normalize());
  EXPECT_FALSE(sent.normalize());
  EXPECT_EQ(sent.pooling(), v1::POOLING_LAST_TOKEN);
  EXPECT_EQ(sent.dimensions(), 2u);
  EXPECT_EQ(sent.prompt_name(), "query");
}

TEST_F(EncoderctlTest, ReadsJsonLinesInEveryCommandThatReadsTexts) {
  const std::string lines = File("in.txt", "one\ntwo words\n");
  const std::string json =
      File("in.jsonl", "{\"body\": \"one\"}\n\"two words\"\n\n");
  for (const std::string command :
       {"embed", "encode", "tokenize", "similarity"}) {
    ASSERT_EQ(Run({command, "--input", lines}), kExitOk) << err_;
    const std::string plain = out_;
    ASSERT_EQ(Run({command, "--input", json, "--field=body"}), kExitOk) << err_;
    EXPECT_EQ(out_, plain);
    EXPECT_EQ(Run({command, "--input", json}), kExitFailed);
    EXPECT_THAT(err_, HasSubstr("in.jsonl:1: INVALID_ARGUMENT: inputs[0] is "));
    EXPECT_EQ(Run({command, "--input_format=jsonl", "one", "two words"}),
              kExitUsage);
  }
  Run({"encode", "--on_error=skip", "--format=jsonl", "--input", json});
  EXPECT_THAT(err_, HasSubstr("in.jsonl:1: skipped: "));
  EXPECT_THAT(out_, StartsWith("{\"index\":0,\"error\""));
}

TEST_F(EncoderctlTest, AnOutputStaysUntilThereIsSomethingInItsPlace) {
  const std::string text = File("out.txt", "of an earlier run\n");
  const std::string npy = File("out.npy", "of an earlier run\n");
  EXPECT_EQ(Run({"embed", "--output", text, "a b c d e f g"}), kExitFailed);
  EXPECT_EQ(Run({"embed", "--output", text}, ""), kExitFailed);
  EXPECT_EQ(Read(text), "of an earlier run\n");
  EXPECT_EQ(
      Run({"encode", "--layer=9", "--format=npy", "--output", npy, "one"}),
      kExitFailed);
  EXPECT_EQ(Read(npy), "of an earlier run\n");
  ASSERT_EQ(Run({"tokenize", "--output", text, "x"}), kExitOk) << err_;
  EXPECT_EQ(Read(text), "[CLS] x [SEP]\n");
  ASSERT_EQ(Run({"encode", "--format=npy", "--on_error=skip", "--output", npy,
                 "a b c d e f g"}),
            kExitFailed);
  EXPECT_EQ(Read(npy), NpyHeader(0, 0));
}

TEST_F(EncoderctlTest, EncodesTokenStates) {
  ASSERT_EQ(Run({"encode", "one", "two words"}), kExitOk) << err_;
  EXPECT_THAT(Lines(), SizeIs(3 + 4));
  ASSERT_EQ(Run({"encode", "--format=jsonl", "one"}), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("\"rows\":3,\"columns\":6,\"states\":[["));
  const std::string out = File("states.npy", "");
  ASSERT_EQ(
      Run({"encode", "--format=npy", "--output", out, "one", "two words"}),
      kExitOk)
      << err_;
  EXPECT_EQ(Read(out).substr(0, kNpyHeaderBytes),
            NpyHeader(7, FakeEncoderService::kHiddenSize));
  EXPECT_EQ(Run({"encode", "--layer=9", "one"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("(LAYER_OUT_OF_RANGE)"));
}

TEST_F(EncoderctlTest, ShowsTokens) {
  ASSERT_EQ(Run({"tokenize", "two words"}), kExitOk) << err_;
  EXPECT_EQ(out_, "[CLS] two words [SEP]\n");
  ASSERT_EQ(Run({"tokenize", "--format=jsonl", "\xc3\xa4"}), kExitOk) << err_;
  EXPECT_EQ(out_,
            "{\"index\":0,\"token_count\":3,\"fits\":true,\"ids\":[100,101,102]"
            ",\"segment_ids\":[0,0,0],\"tokens\":[\"[CLS]\",\"\xc3\xa4\","
            "\"[SEP]\"],\"begin_offsets\":[0,1,2],\"end_offsets\":[1,2,3]}\n");
}

TEST_F(EncoderctlTest, ComparesTexts) {
  ASSERT_EQ(Run({"similarity", "one", "two", "one"}), kExitOk) << err_;
  ASSERT_THAT(Lines(), SizeIs(4));
  EXPECT_THAT(Lines()[1], HasSubstr("   1  1.0000"));
  EXPECT_THAT(Lines()[1], HasSubstr("  1.0000  one"));
  ASSERT_EQ(Run({"similarity", "--format=jsonl"}, "one\ntwo\n"), kExitOk);
  EXPECT_THAT(Lines()[0], StartsWith("{\"index\":0,\"similarities\":[1,"));
  EXPECT_EQ(Run({"similarity", "one"}), kExitUsage);
  EXPECT_EQ(Run({"similarity", "one", "two", "--output=/dev/full"}),
            kExitFailed);
  EXPECT_EQ(err_,
            "encoderctl similarity: DATA_LOSS: cannot write to /dev/full: No "
            "space left on device\n");
}

TEST_F(EncoderctlTest, DescribesModels) {
  ASSERT_EQ(Run({"models"}), kExitOk) << err_;
  EXPECT_THAT(out_, StartsWith("name                    fake\n"
                               "max_len                 8\n"
                               "dimensions              6\n"));
  EXPECT_THAT(out_, HasSubstr("pooling                 mean\n"));
  EXPECT_THAT(out_, HasSubstr("max_len_source          position_table\n"));
  EXPECT_THAT(out_, HasSubstr("8 x 0 = 0 parameters"));
  ASSERT_EQ(Run({"models", "--format=jsonl", "fake"}), kExitOk) << err_;
  EXPECT_THAT(out_,
              StartsWith("{\"name\":\"fake\",\"max_len\":8,\"dimensions\""));
  EXPECT_EQ(Run({"models", "other"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("NOT_FOUND (MODEL_NOT_FOUND): model \"other\""));
}

TEST_F(EncoderctlTest, AnswersHealthWithItsExitCode) {
  EXPECT_EQ(Run({"health"}), kExitOk);
  EXPECT_EQ(out_, "SERVING\n");
  service_.SetServing(false);
  EXPECT_EQ(Run({"health"}), kExitFailed);
  EXPECT_EQ(out_, "NOT_SERVING\n");
  ASSERT_EQ(Run({"health", "--help"}), kExitOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("does not wait for a model to load"),
                          Not(HasSubstr("wait for a server that loads"))));
}

TEST_F(EncoderctlTest, PrintsTheServersOwnWords) {
  service_.FailNext(1,
                    FakeError(grpc::StatusCode::INTERNAL, "device fault 4711",
                              "DEVICE_FAULT", {{"error_id", "4711"}}));
  EXPECT_EQ(Run({"embed", "one"}), kExitFailed);
  EXPECT_EQ(err_,
            "encoderctl embed: INTERNAL (DEVICE_FAULT): device fault 4711\n");
}

TEST_F(EncoderctlTest, ShowsProgressOnlyWhereItIsWanted) {
  ASSERT_EQ(Run({"embed", "--progress=always", "one"}), kExitOk);
  EXPECT_THAT(err_, AllOf(HasSubstr("\r1 text  "), HasSubstr("\r1 text in "),
                          EndsWith(" texts/s\n")));
  ASSERT_EQ(Run({"similarity", "--progress=always", "one", "two"}), kExitOk);
  EXPECT_THAT(err_, AllOf(HasSubstr("\r1 text  "), HasSubstr("\r2 texts in "),
                          EndsWith(" texts/s\n")));
  ASSERT_EQ(Run({"embed", "one"}), kExitOk);
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(EncoderctlTest, HelpsWithEveryCommand) {
  ASSERT_EQ(RunBare({"--help"}), kExitOk);
  ExpectNarrow();
  const std::string overview = out_;
  for (const Command& command : Commands()) {
    EXPECT_THAT(overview, HasSubstr(absl::StrCat("  ", command.name, " ")));
    ASSERT_EQ(RunBare({command.name, "--help"}), kExitOk);
    const bool asks = std::string(command.name) != "completion";
    for (const char* flag :
         {"localhost:8400)", "encoderctl help connection\n", "--FLAG"}) {
      EXPECT_EQ(absl::StrContains(out_, flag), asks) << command.name << flag;
    }
    EXPECT_THAT(out_, HasSubstr(absl::StrCat("\nexamples:\n")));
    EXPECT_THAT(out_, HasSubstr(absl::StrCat("encoderctl ", command.name)));
    const std::string help = out_;
    ASSERT_EQ(RunBare({command.name, "some", "-h"}), kExitOk);
    EXPECT_EQ(out_, help);
    ASSERT_EQ(RunBare({"help", command.name}), kExitOk);
    EXPECT_EQ(out_, help);
    ExpectNarrow();
    EXPECT_THAT(out_, Not(HasSubstr("  [--FLAG=VALUE...]")));
  }
  ASSERT_EQ(RunBare({"embed", "--help"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("auto: npy if --output ends in .npy"));
  EXPECT_THAT(out_, AllOf(HasSubstr("texts per call, 1 to 65536;"),
                          Not(HasSubstr("--ca_file=FILE"))));
  ASSERT_EQ(RunBare({"help", "connection"}), kExitOk);
  ExpectNarrow();
  EXPECT_THAT(out_, AllOf(HasSubstr("  --tls["), HasSubstr("--ca_file=FILE"),
                          HasSubstr("--token_file=FILE")));
  ASSERT_EQ(RunBare({"--version"}), kExitOk);
  EXPECT_THAT(out_, StartsWith("encoderctl "));
}

// Answers its first call, and after `gone` more, which find it gone, all.
class GoesAway : public FakeEncoderService {
 public:
  explicit GoesAway(int gone) : gone_(gone) {}
  grpc::Status Embed(grpc::ServerContext* context,
                     const v1::EmbedRequest* request,
                     v1::EmbedResponse* response) override {
    const int call = calls_++;
    if (call > 0 && call <= gone_)
      return {grpc::StatusCode::UNAVAILABLE, "Socket closed"};
    return FakeEncoderService::Embed(context, request, response);
  }

 private:
  const int gone_;
  std::atomic<int> calls_{0};
};

TEST_F(EncoderctlTest, AwaitsTheReturnOfAServerThatGoesAwayAndSaysSo) {
  const GoesAway service(12);  // gRPC itself makes five attempts
  EXPECT_EQ(RunBare({"embed", "--batch_size=1", "--in_flight=1",
                     absl::StrCat("--target=", service.target()), "one", "two",
                     "three"}),
            kExitOk)
      << err_;
  EXPECT_EQ(Lines().size(), 3u);
  EXPECT_EQ(err_, absl::StrCat("encoderctl embed: lost the server at ",
                               service.target(),
                               "; calls wait for its return until their "
                               "--timeout (1m)\n"));
}

}  // namespace
}  // namespace encoderd::ctl
