// encoderctl bench against the fake service: what is sent, counted, reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/arrivals.h"
#include "client/cpp/encoderctl/encoderctl.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/patience.h"

namespace encoderd::ctl {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

class EncoderctlBenchTest : public ::testing::Test {
 protected:
  int Run(const std::vector<std::string>& arguments,
          const std::string& input = "") {
    std::istringstream in(input);
    std::ostringstream out, err;
    Environment environment{in, out, err};
    std::vector<std::string> all = {"bench", absl::StrCat("--target=", target_),
                                    "--words=3"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const int code = RunEncoderctl(all, environment);
    out_ = out.str();
    err_ = err.str();
    return code;
  }
  // The same with figures for programs.
  int RunJson(std::vector<std::string> arguments,
              const std::string& input = "") {
    arguments.push_back("--format=jsonl");
    const int code = Run(arguments, input);
    json_ = nlohmann::json::parse(out_, nullptr, false);
    return code;
  }

  FakeEncoderService service_;
  std::string target_ = service_.target();
  std::string out_;
  std::string err_;
  nlohmann::json json_;
};

TEST_F(EncoderctlBenchTest, SharesItsCallsAmongSeveralServers) {
  const FakeEncoderService other;
  target_ = absl::StrCat("ipv4:127.0.0.1:", service_.port(),
                         ",127.0.0.1:", other.port());
  // One may be connected when the other has answered all calls of a run.
  EXPECT_TRUE(Eventually([&] {
    EXPECT_EQ(RunJson({"--count=20", "--warm_up=0s"}), kExitOk) << err_;
    return service_.embed_calls() > 0 && other.embed_calls() > 0;
  }));
}

TEST_F(EncoderctlBenchTest, CountsAsManyCallsAsAreAskedForAndCutsOffTheRest) {
  ASSERT_EQ(RunJson({"--count=20", "--batch_size=3", "--concurrency=4",
                     "--warm_up=0s", "--duration=10m"}),
            kExitOk)
      << err_;
  // The other three callers have calls in flight when the last one ends.
  EXPECT_THAT(service_.call_sizes(), SizeIs(AllOf(Ge(20), Le(23))));
  EXPECT_THAT(service_.call_sizes(), Each(3));
  EXPECT_LE(service_.max_calls_together(), 4);
  EXPECT_EQ(json_["calls_answered"], 20);
  EXPECT_EQ(json_["calls_failed"], 0);
  EXPECT_LE(json_["calls_cut_off"], 3);
  EXPECT_EQ(json_["texts"], 60);
  EXPECT_EQ(json_["tokens"], 60 * 5);
  EXPECT_EQ(json_["ended_by"], "count");
  EXPECT_EQ(json_["method"], "Embed");
  EXPECT_GT(json_["texts_per_s"], 0);
  EXPECT_GT(json_["latency_ms"]["p50"], 0);
  EXPECT_LE(json_["latency_ms"]["p99"], json_["latency_ms"]["max"]);
}

TEST_F(EncoderctlBenchTest, NamesTheLineThatIsNotUtf8AndSendsNothing) {
  EXPECT_EQ(Run({"--input=-"}, "one\ncaf\xe9\n"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("standard input:2 is not valid UTF-8 at byte 3"));
  EXPECT_EQ(service_.embed_calls(), 0);
}

TEST_F(EncoderctlBenchTest, ReadsJsonLines) {
  ASSERT_EQ(RunJson({"--input=-", "--input_format=jsonl", "--field=body",
                     "--batch_size=2", "--count=1", "--concurrency=1",
                     "--warm_up=0s", "--duration=10m"},
                    "{\"body\": \"two words\"}\n\"one\"\n\n"),
            kExitOk)
      << err_;
  EXPECT_EQ(json_["tokens"], 4 + 3);
  EXPECT_EQ(Run({"--input=-", "--input_format=jsonl"}, "\"one\"\ntwo\n"),
            kExitFailed);
  EXPECT_THAT(err_, HasSubstr("standard input:2: inputs[1] is invalid JSON"));
}

TEST_F(EncoderctlBenchTest, SaysWhichTextsAreUsedOnlyWhereSomeAreNot) {
  std::string most;
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&most, "text ", i, "\n");
  const std::vector<std::string> flags = {"--input=-", "--count=1",
                                          "--concurrency=1", "--warm_up=0s",
                                          "--duration=10m"};
  ASSERT_EQ(Run(flags, most), kExitOk) << err_;
  EXPECT_EQ(err_, "");
  ASSERT_EQ(Run(flags, most + "one more\n"), kExitOk) << err_;
  EXPECT_EQ(err_, "encoderctl bench: the first 100000 texts are used\n");
}

TEST_F(EncoderctlBenchTest, NamesFilesThatItCannotReadOrWrite) {
  EXPECT_EQ(Run({"--input=/no/such/file"}), kExitFailed);
  EXPECT_EQ(err_,
            "encoderctl bench: cannot read /no/such/file: No such file or "
            "directory\n");
  EXPECT_EQ(Run({"--input=-", "--input_format=json"}, "[\"one\" \"two\"]"),
            kExitFailed);
  EXPECT_EQ(err_,
            "encoderctl bench: standard input: element 2: invalid JSON at byte "
            "8: expected a comma or the array's end, ]\n");
  EXPECT_EQ(Run({"--output=/no/such/folder/x"}), kExitFailed);
  EXPECT_EQ(err_,
            "encoderctl bench: cannot write to /no/such/folder/x: No such file "
            "or directory\n");
  EXPECT_EQ(service_.embed_calls(), 0);
}

TEST_F(EncoderctlBenchTest, HasNoLatencyWhereNothingWasAnswered) {
  service_.FailNext(1 << 30, FakeError(grpc::StatusCode::INTERNAL, "fault",
                                       "DEVICE_FAULT", {}));
  EXPECT_EQ(RunJson({"--count=1", "--concurrency=1", "--warm_up=0s",
                     "--duration=10m"}),
            kExitFailed);
  EXPECT_EQ(json_["calls_answered"], 0);
  EXPECT_TRUE(json_["latency_ms"].is_null());
}

TEST_F(EncoderctlBenchTest, SendsTheSameOverOneStream) {
  ASSERT_EQ(RunJson({"--stream", "--count=20", "--batch_size=3",
                     "--concurrency=4", "--warm_up=0s", "--duration=10m"}),
            kExitOk)
      << err_;
  EXPECT_EQ(service_.streams(), 1);
  EXPECT_GE(service_.stream_texts(), 60);
  EXPECT_LE(service_.stream_texts(), 69);
  EXPECT_EQ(json_["calls_answered"], 20);
  EXPECT_EQ(json_["texts"], 60);
  EXPECT_EQ(json_["tokens"], 60 * 5);
  EXPECT_EQ(json_["method"], "EmbedStream");
}

TEST_F(EncoderctlBenchTest, SaysWhenTextsAreFewerThanThoseInFlight) {
  for (const bool enough : {false, true}) {
    std::vector<std::string> run = {"--concurrency=2",
                                    "--batch_size=2",
                                    "--count=30",
                                    "one",
                                    "one",
                                    "two",
                                    "three"};
    if (enough) run.push_back("four");
    ASSERT_EQ(Run(run), kExitOk) << err_;
    EXPECT_EQ(absl::StrContains(
                  out_, "\ntexts         only 3 distinct for 4 in flight; "),
              !enough)
        << out_;
  }
}

TEST_F(EncoderctlBenchTest, SaysWhenTheSampleIsTooSmall) {
  for (const std::string stream : {"--stream=no", "--stream=yes"}) {
    for (const bool enough : {false, true}) {
      std::vector<std::string> run = {stream, "--concurrency=11",
                                      "--warm_up=0s", "--duration=10m",
                                      enough ? "--count=110" : "--count=109"};
      ASSERT_EQ(RunJson(run), kExitOk) << err_;
      EXPECT_EQ(json_["sample_too_small"], !enough);
      ASSERT_EQ(Run(run), kExitOk) << err_;
      EXPECT_EQ(absl::StrContains(out_,
                                  "too small for these figures: 109 "
                                  "answered calls; it needs 110: raise "
                                  "--duration or --count\n"),
                !enough);
    }
  }
}

TEST_F(EncoderctlBenchTest, EndsWhenItsTimeIsUp) {
  for (const std::string stream : {"no", "yes"}) {
    // However little a slow machine gets done in that time.
    RunJson({"--stream=" + stream, "--warm_up=50ms", "--duration=300ms"});
    EXPECT_EQ(json_["ended_by"], "duration") << err_;
    EXPECT_DOUBLE_EQ(json_["measured_s"], 0.3);
    EXPECT_EQ(json_["calls_failed"], 0);
  }
}

TEST_F(EncoderctlBenchTest, CountsFailuresByReasonAndTriesNoCallTwice) {
  const grpc::Status full = FakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                      "the queue is full", "QUEUE_FULL", {});
  for (const bool stream : {false, true}) {
    service_.FailNext(2, full);
    EXPECT_EQ(Run({stream ? "--stream=yes" : "--stream=no", "--count=6",
                   "--concurrency=1", "--warm_up=0s", "--duration=10m"}),
              kExitFailed);
    EXPECT_THAT(out_, HasSubstr("4 answered, 2 failed, 0 cut off"));
    EXPECT_THAT(out_, HasSubstr("failed        2 QUEUE_FULL; the first: "
                                "RESOURCE_EXHAUSTED (QUEUE_FULL): the queue"));
  }
}

TEST_F(EncoderctlBenchTest, ContinuesAfterAStreamBreaks) {
  service_.BreakStreams(1, 2);
  EXPECT_EQ(RunJson({"--stream", "--count=6", "--concurrency=1", "--warm_up=0s",
                     "--duration=10m"}),
            kExitFailed);
  EXPECT_EQ(json_["failures"]["DRAINING"], 1);
  EXPECT_EQ(json_["calls_answered"], 5);
  EXPECT_EQ(service_.streams(), 2);
}

TEST_F(EncoderctlBenchTest, UsesTheTextsItIsGivenOverAndOver) {
  ASSERT_EQ(RunJson({"--input=-", "--count=3", "--batch_size=2",
                     "--concurrency=1", "--warm_up=0s", "--duration=10m"},
                    "one\ntwo words\n"),
            kExitOk)
      << err_;
  EXPECT_EQ(json_["tokens"], 3 * (3 + 4));
  EXPECT_THAT(err_, IsEmpty());
  EXPECT_EQ(Run({"--input=-"}, ""), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("there are no texts"));
}

TEST_F(EncoderctlBenchTest, SaysWhatItCannotDo) {
  EXPECT_EQ(Run({"--stream", "--concurrency=65"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--concurrency is 65; a server reads at most"));
  EXPECT_EQ(Run({"--model=other"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("MODEL_NOT_FOUND"));
  EXPECT_EQ(Run({"--stream=maybe"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("it takes yes or no"));
}

TEST_F(EncoderctlBenchTest, AnOpenLoopBeginsCallsHoweverManyAreInFlight) {
  service_.HoldUntilTogether(16);  // which a closed loop of 8 cannot pass
  ASSERT_EQ(RunJson({"--rate=2000", "--count=40", "--batch_size=2",
                     "--warm_up=0s", "--duration=10m"}),
            kExitOk)
      << err_;
  EXPECT_EQ(json_["calls_answered"], 40);
  EXPECT_EQ(json_["rate"], 2000);
  EXPECT_EQ(json_["concurrency"], 1024);
  ASSERT_EQ(Run({"--rate=2000", "--count=40", "--warm_up=0s"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("2000 calls per second at random times"));
  EXPECT_THAT(out_, HasSubstr("p99.9"));
}

TEST_F(EncoderctlBenchTest, AnOpenLoopCountsFromWhenACallWasDue) {
  // All are due at once, and one is in flight at a time.
  ASSERT_EQ(RunJson({"--rate=1000000", "--count=50", "--concurrency=1",
                     "--batch_size=1", "--warm_up=0s", "--duration=10m"}),
            kExitOk)
      << err_;
  EXPECT_EQ(service_.max_calls_together(), 1);
  const double measured_ms = json_["measured_s"].get<double>() * 1e3;
  EXPECT_GT(json_["latency_ms"]["max"], measured_ms / 2);
}

TEST_F(EncoderctlBenchTest, AnOpenLoopCountsWhatWasDueAndNotBegun) {
  ASSERT_EQ(RunJson({"--rate=100000", "--count=50", "--concurrency=1",
                     "--batch_size=1", "--warm_up=0s", "--duration=10m"}),
            kExitOk)
      << err_;
  EXPECT_GT(json_["calls_not_begun"], 0);
  ASSERT_EQ(
      Run({"--rate=100000", "--count=50", "--concurrency=1", "--warm_up=0s"}),
      kExitOk);
  EXPECT_THAT(out_, HasSubstr("due and not begun"));
  EXPECT_THAT(out_, HasSubstr("at most 1 in flight"));
}

TEST_F(EncoderctlBenchTest, TheRateOfAnOpenLoopTakesDecimals) {
  ASSERT_EQ(
      RunJson({"--rate=2000.5", "--count=2", "--warm_up=0s", "--duration=10m"}),
      kExitOk)
      << err_;
  EXPECT_EQ(json_["rate"], 2000.5);
  ASSERT_EQ(Run({"--rate=2000.5", "--count=2", "--warm_up=0s"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("2000.5 calls per second at random times"));
  EXPECT_THAT(out_, HasSubstr(", 64 texts each, "));
  for (const char* rate : {"--rate=-1", "--rate=nan", "--rate=1e7"}) {
    EXPECT_EQ(Run({rate}), kExitUsage);
    EXPECT_THAT(err_, HasSubstr("it takes a number from 0 to 1000000"));
  }
}

TEST_F(EncoderctlBenchTest, ATextThatIsRefusedEndsItUnderItsName) {
  EXPECT_EQ(Run({"--input=-", "--batch_size=2", "--concurrency=1",
                 "--warm_up=10m", "--duration=10m"},
                "one\ntwo\nthree\na b c d e f g\n"),
            kExitFailed);
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_THAT(err_, HasSubstr("encoderctl bench: standard input:4: "
                              "INVALID_ARGUMENT (INPUT_TOO_LONG): inputs[3] "
                              "has 9 tokens"));
  EXPECT_THAT(err_, HasSubstr("; --truncate=end cuts it"));
  service_.FailNext(
      1, FakeError(grpc::StatusCode::INVALID_ARGUMENT, "inputs[1] is empty",
                   "EMPTY_INPUT", {{"input_index", "1"}}));
  EXPECT_EQ(Run({"--input=-", "--batch_size=2", "--stream", "--concurrency=1",
                 "--warm_up=10m", "--duration=10m"},
                "one\ntwo\n"),
            kExitFailed);
  EXPECT_THAT(err_, HasSubstr("standard input:2: INVALID_ARGUMENT "
                              "(EMPTY_INPUT): inputs[1] is empty; remove it"));
}

TEST_F(EncoderctlBenchTest, AnOpenLoopIsNotForStreams) {
  EXPECT_EQ(Run({"--rate=10", "--stream"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--rate is for calls: drop one"));
}

TEST(ArrivalsTest, GapsAreThoseOfAPoissonProcess) {
  const absl::Time begin = absl::UnixEpoch();
  Arrivals arrivals(100, begin);
  EXPECT_EQ(arrivals.next(), begin);
  double sum = 0, squares = 0;
  constexpr int kCalls = 100000;
  for (int i = 0; i < kCalls; ++i) {
    const absl::Time before = arrivals.next();
    arrivals.Advance();
    const double gap = absl::ToDoubleSeconds(arrivals.next() - before);
    ASSERT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / kCalls;
  EXPECT_NEAR(mean, 0.01, 0.0001);
  // Their standard deviation is their mean.
  EXPECT_NEAR(std::sqrt(squares / kCalls - mean * mean), 0.01, 0.0002);
}

}  // namespace
}  // namespace encoderd::ctl
