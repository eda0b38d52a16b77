// Device faults: who fails, who does not, and what is said.
#include <string>
#include <vector>

#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

TEST(PipelineFaultTest, OnePoisonousInputFailsAlone) {
  PipelineHarness harness;
  harness.device.PoisonToken(FakeTokenizer::Id('!'));
  auto blocker = harness.Block();
  std::vector<PipelineHarness::Pending> good;
  for (int i = 0; i < 6; ++i) {
    good.push_back(harness.Submit({"good " + std::to_string(i), "x"}));
    if (i == 2) good.push_back(harness.Submit({"bad!", "its neighbor"}));
  }
  harness.WaitForQueue(14);
  harness.device.OpenGate();
  for (size_t i = 0; i < good.size(); ++i) {
    const auto result = good[i].Get();
    if (i == 3) {
      EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
      EXPECT_EQ(ReasonOf(result.status()), "DEVICE_FAULT");
      continue;
    }
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->outputs[0].values,
              harness.Expected("good " + std::to_string(i < 3 ? i : i - 1)));
    EXPECT_EQ(result->outputs[1].values, harness.Expected("x"));
  }
}

TEST(PipelineFaultTest, TheAnswerAndTheLogShareAnErrorId) {
  PipelineHarness harness;
  harness.device.PoisonToken(FakeTokenizer::Id('!'));
  const absl::Status status = harness.Submit({"!"}).Get().status();
  const auto seen = harness.observer.seen();
  ASSERT_EQ(seen.faults.size(), 1u);
  EXPECT_FALSE(seen.faults[0].lost);
  EXPECT_EQ(seen.faults[0].status.message(),
            "the batch holds a poisonous token");
  EXPECT_EQ(status.message().find("poisonous"), absl::string_view::npos);
  EXPECT_EQ(GetErrorDetail(status)->metadata.at("error_id"),
            GetErrorDetail(seen.faults[0].status)->metadata.at("error_id"));
}

TEST(PipelineFaultTest, APassingFaultOfABatchIsHealedByTryingItsHalves) {
  PipelineHarness harness;
  harness.device.FailNext(1, absl::InternalError("hiccup"));
  const auto result = harness.Submit({"a", "b", "c"}).Get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[2].values, harness.Expected("c"));
  EXPECT_EQ(harness.observer.seen().faults.size(), 1u);
}

TEST(PipelineFaultTest, AfterAFailedBatchTheNextOneSucceeds) {
  PipelineHarness harness;
  harness.device.FailNext(1, absl::InternalError("hiccup"));
  EXPECT_EQ(ReasonOf(harness.Submit({"a"}).Get().status()), "DEVICE_FAULT");
  EXPECT_TRUE(harness.Submit({"a"}).Get().ok());
}

TEST(PipelineFaultTest, TheRestOfAFailedRequestIsNotComputed) {
  PipelineHarness harness;
  harness.device.PoisonToken(FakeTokenizer::Id('!'));
  std::vector<std::string> texts = EightBytes(200);
  texts[0] = "!";
  EXPECT_EQ(ReasonOf(harness.Submit(texts).Get().status()), "DEVICE_FAULT");
  EXPECT_LT(harness.device.rows_computed(), 13);  // of the first batch
}

// The API refuses such a list; this one comes past it.
TEST(PipelineFaultTest, IdsThatNobodyCheckedNeverReachTheDevice) {
  PipelineHarness harness;
  TokenSequence too_long;
  too_long.token_ids.assign(harness.limits.max_len + 1, FakeTokenizer::Id('x'));
  PipelineRequest request = TextRequest({"fine"});
  request.inputs.push_back(too_long);
  request.errors_per_input = true;
  const auto result = harness.Submit(request).Get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0].values, harness.Expected("fine"));
  EXPECT_EQ(ReasonOf(result->outputs[1].status), "INTERNAL_FAULT");
  request.errors_per_input = false;
  EXPECT_EQ(ReasonOf(harness.Submit(request).Get().status()), "INTERNAL_FAULT");
  EXPECT_TRUE(harness.observer.seen().faults.empty());
}

TEST(PipelineFaultTest, AThrowingSessionFailsItsRequestAndLivesOn) {
  PipelineHarness harness;
  harness.device.ThrowOnToken(FakeTokenizer::Id('!'));
  EXPECT_EQ(ReasonOf(harness.Submit({"!"}).Get().status()), "DEVICE_FAULT");
  EXPECT_TRUE(harness.Submit({"a"}).Get().ok());
}

TEST(PipelineFaultTest, AResultThatIsNoNumberFailsItsRequestAlone) {
  PipelineHarness harness;
  harness.device.NanToken(FakeTokenizer::Id('!'));
  auto blocker = harness.Block();
  auto good = harness.Submit({"good"});
  auto bad = harness.Submit({"fine", "bad!"});
  harness.WaitForQueue(3);
  harness.device.OpenGate();
  const auto result = good.Get();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outputs[0].values, harness.Expected("good"));
  const absl::Status status = bad.Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ReasonOf(status), "DEVICE_FAULT");
  EXPECT_EQ(harness.observer.seen().faults.size(), 1u);
}

TEST(PipelineFaultTest, ABatchThatHangsAgesWhileTheOtherThreadComputes) {
  PipelineHarness::Settings settings;
  settings.sessions = 2;
  PipelineHarness harness(settings);
  const auto age = [&] { return harness.pipeline->figures().oldest_batch_age; };
  EXPECT_EQ(age(), absl::ZeroDuration());
  harness.device.HoldToken(FakeTokenizer::Id('!'));
  auto hangs = harness.Submit({"!"});
  ASSERT_TRUE(harness.device.WaitForBatchesAtGate(1));
  const absl::Time since = SteadyNow();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(harness.Submit({"a"}).Get().ok());
    const absl::Duration passed = SteadyNow() - since;
    EXPECT_GE(age(), passed);
  }
  EXPECT_FALSE(hangs.answered());
  harness.device.OpenGate();
  EXPECT_TRUE(hangs.Get().ok());
  EXPECT_TRUE(Eventually([&] { return age() == absl::ZeroDuration(); }));
}

TEST(PipelineFaultTest, ABatchThatRunsAgainInHalvesKeepsItsAge) {
  PipelineHarness harness;
  harness.device.PoisonToken(FakeTokenizer::Id('!'));
  auto blocker = harness.Block();
  auto bad = harness.Submit({"bad!"});
  auto good = harness.Submit({"good"});
  harness.WaitForQueue(2);
  harness.device.LetThrough(1);
  EXPECT_TRUE(blocker.Get().ok());
  ASSERT_TRUE(harness.device.WaitForBatchesAtGate(1));
  const absl::Time since = SteadyNow();
  absl::SleepFor(absl::Milliseconds(20));
  harness.device.LetThrough(1);
  ASSERT_TRUE(Eventually([&] { return harness.device.log_size() == 2; }));
  ASSERT_TRUE(harness.device.WaitForBatchesAtGate(1));
  const absl::Duration passed = SteadyNow() - since;
  EXPECT_GE(harness.pipeline->figures().oldest_batch_age, passed);
  harness.device.OpenGate();
  EXPECT_FALSE(bad.Get().ok());
  EXPECT_TRUE(good.Get().ok());
  EXPECT_EQ(harness.device.log()[1].rows.size(), 2u);
}

TEST(PipelineFaultTest, ALostDeviceAnswersEverythingAtOnce) {
  PipelineHarness harness;
  auto computing = harness.Block();
  auto queued = harness.Submit(std::vector<std::string>(500, "waits"));
  harness.WaitForQueue(500);
  harness.device.Lose();
  harness.device.OpenGate();
  EXPECT_EQ(computing.Get().status().code(), absl::StatusCode::kInternal);
  const absl::Status status = queued.Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(status), "DEVICE_FAULT");
  const auto after = harness.Submit({"late"}).Get();
  EXPECT_EQ(after.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(after.status()), "DEVICE_FAULT");
  const auto seen = harness.observer.seen();
  ASSERT_EQ(seen.faults.size(), 1u);
  EXPECT_TRUE(seen.faults[0].lost);
  EXPECT_EQ(harness.device.log().size(), 1u);  // not tried again
}

TEST(PipelineFaultTest, WhatIsBeingTokenizedWhenTheDeviceIsLostIsAnsweredToo) {
  PipelineHarness harness;
  auto computing = harness.Block();
  harness.tokenizer.CloseGate();
  auto tokenizing = harness.Submit({"text"});
  ASSERT_TRUE(harness.tokenizer.WaitForTextsAtGate(1));
  harness.device.Lose();
  harness.device.OpenGate();
  EXPECT_FALSE(computing.Get().ok());
  harness.tokenizer.OpenGate();
  EXPECT_EQ(tokenizing.Get().status().code(), absl::StatusCode::kUnavailable);
}

TEST(PipelineFaultTest, WithErrorsPerInputTheOthersAreComputed) {
  PipelineHarness harness;
  harness.device.PoisonToken(FakeTokenizer::Id('#'));
  const absl::Status refused = DrainingError();  // any
  PipelineRequest request = TextRequest({"one", std::string(63, 'x'), "#"});
  request.inputs.push_back(RefusedInput{refused, 7});
  request.inputs.push_back(TextInput{"two"});
  request.errors_per_input = true;
  const auto result = harness.Submit(request).Get();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->outputs.size(), 5u);
  EXPECT_EQ(result->outputs[0].values, harness.Expected("one"));
  EXPECT_EQ(ReasonOf(result->outputs[1].status), "INPUT_TOO_LONG");
  EXPECT_EQ(result->outputs[1].token_count, 65);
  EXPECT_TRUE(result->outputs[1].values.empty());
  EXPECT_EQ(ReasonOf(result->outputs[2].status), "DEVICE_FAULT");
  EXPECT_TRUE(result->outputs[2].values.empty());
  EXPECT_EQ(result->outputs[3].status, refused);
  EXPECT_EQ(result->outputs[3].token_count, 7);
  EXPECT_EQ(result->outputs[4].values, harness.Expected("two"));
  EXPECT_EQ(result->tokens, 5 + 3 + 5);
}

TEST(PipelineFaultTest, ARequestWithoutAnInputToComputeIsAnsweredAtOnce) {
  PipelineHarness harness;
  PipelineRequest request;
  request.inputs = {RefusedInput{DrainingError()},
                    RefusedInput{ExpiredError()}};
  request.errors_per_input = true;
  const auto result = harness.Submit(request).Get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0].status, DrainingError());
  EXPECT_EQ(result->outputs[1].status, ExpiredError());
  EXPECT_EQ(result->tokens, 0);
  EXPECT_EQ(harness.device.rows_computed(), 0);
}

TEST(PipelineFaultTest, ALostDeviceFailsTheCallEvenWithErrorsPerInput) {
  PipelineHarness harness;
  harness.device.Lose();
  PipelineRequest request = TextRequest({"one", "two"});
  request.errors_per_input = true;
  const auto result = harness.Submit(request).Get();
  EXPECT_EQ(ReasonOf(result.status()), "DEVICE_FAULT");
}

TEST(PipelineFaultTest, WhatThrowsOnATokenizerThreadFailsItsCallAlone) {
  PipelineHarness harness;
  PipelineRequest request = TextRequest({"throw" + std::string(70, 'x')});
  request.truncate = TruncateMode::kEnd;
  EXPECT_EQ(ReasonOf(harness.Submit(request).Get().status()), "INTERNAL_FAULT");
  request.errors_per_input = true;
  EXPECT_EQ(ReasonOf(harness.Submit(request).Get().status()), "INTERNAL_FAULT");
  EXPECT_EQ(harness.observer.seen().sequences, 0);  // none became tokens
  EXPECT_TRUE(harness.Submit({"after it"}).Get().ok());
}

TEST(PipelineFaultTest, WhatThrowsBetweenTokenizingAndComputingFailsItsCall) {
  PipelineHarness harness;
  harness.observer.ThrowOnce();  // as if there were no memory
  const absl::Status status = harness.Submit({"a", "b"}).Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ReasonOf(status), "INTERNAL_FAULT");
  EXPECT_EQ(harness.device.rows_computed(), 0);
  EXPECT_TRUE(harness.Submit({"after it"}).Get().ok());
}

}  // namespace
}  // namespace encoderd
