// Equal inputs in one batch: computed once, answered each.
#include <string>
#include <vector>

#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

using Pendings = std::vector<PipelineHarness::Pending>;

// The rows of the last batch.
size_t LastRows(const PipelineHarness& harness) {
  return harness.device.log().back().rows.size();
}

TEST(PipelineDuplicatesTest, OneTextOfManyCallersIsOneRow) {
  PipelineHarness harness;
  auto blocker = harness.Block();
  Pendings pendings;
  for (int i = 0; i < 4; ++i) {
    PipelineRequest request = TextRequest({"same", std::to_string(i), "same"});
    request.caller.id = i;
    pendings.push_back(harness.Submit(std::move(request)));
  }
  harness.WaitForQueue(12);
  harness.device.OpenGate();
  for (int i = 0; i < 4; ++i) {
    const auto result = pendings[i].Get();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->outputs[0].values, harness.Expected("same"));
    EXPECT_EQ(result->outputs[1].values, harness.Expected(std::to_string(i)));
    EXPECT_EQ(result->outputs[2].values, harness.Expected("same"));
    EXPECT_EQ(result->outputs[2].token_count, 6);
    EXPECT_EQ(result->tokens, 6 + 3 + 6);  // each caller's usage counts all
  }
  EXPECT_EQ(LastRows(harness), 5);
  harness.pipeline->WaitIdle(absl::InfiniteFuture());
  const auto seen = harness.observer.seen();
  EXPECT_EQ(seen.duplicate_tokens, 7 * 6);
  EXPECT_EQ(seen.input_tokens, 7 + 4 * (6 + 3 + 6));
  EXPECT_EQ(seen.batch_tokens + seen.duplicate_tokens, seen.input_tokens);
}

TEST(PipelineDuplicatesTest, OtherOptionsOfTheSameTextAreOtherRows) {
  PipelineHarness harness;
  auto blocker = harness.Block();
  std::vector<SequenceOutput> outputs(4);
  outputs[1].normalize = true;
  outputs[2].pooling = Pooling::kCls;
  outputs[3].kind = SequenceOutput::Kind::kStates;
  Pendings pendings;
  for (const SequenceOutput& output : outputs) {
    PipelineRequest request = TextRequest({"same"});
    request.output = output;
    pendings.push_back(harness.Submit(std::move(request)));
  }
  harness.WaitForQueue(4);
  harness.device.OpenGate();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto result = pendings[i].Get();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->outputs[0].values, harness.Expected("same", outputs[i]));
  }
  EXPECT_EQ(LastRows(harness), 4);
}

TEST(PipelineDuplicatesTest, EachRequestGetsItsOwnRowsOfSharedStates) {
  PipelineHarness harness;
  auto blocker = harness.Block();
  PipelineRequest request = TextRequest({"same"});
  request.output.kind = SequenceOutput::Kind::kStates;
  auto all = harness.Submit(request);
  request.without_special_tokens = true;
  auto span = harness.Submit(request);
  harness.WaitForQueue(2);
  harness.device.OpenGate();
  const std::vector<float> states = harness.Expected("same", request.output);
  const auto of_all = all.Get();
  const auto of_span = span.Get();
  ASSERT_TRUE(of_all.ok() && of_span.ok());
  EXPECT_EQ(of_all->outputs[0].values, states);
  EXPECT_EQ(of_span->outputs[0].rows, 4);
  EXPECT_EQ(of_span->outputs[0].values,
            std::vector<float>(states.begin() + 8, states.end() - 8));
  EXPECT_EQ(LastRows(harness), 1);
}

TEST(PipelineDuplicatesTest, AFaultOfTheInputIsTheErrorOfEachThatHasIt) {
  PipelineHarness harness;
  harness.device.PoisonToken(FakeTokenizer::Id('!'));
  harness.device.NanToken(FakeTokenizer::Id('?'));
  auto blocker = harness.Block();
  PipelineRequest request = TextRequest({"!", "fine", "?", "!", "?", "fine"});
  request.errors_per_input = true;
  auto one = harness.Submit(request);
  auto two = harness.Submit(request);
  auto good = harness.Submit({"fine"});
  harness.WaitForQueue(13);
  harness.device.OpenGate();
  for (auto* pending : {&one, &two}) {
    const auto result = pending->Get();
    ASSERT_TRUE(result.ok()) << result.status();
    for (const int i : {0, 2, 3, 4}) {
      EXPECT_EQ(ReasonOf(result->outputs[i].status), "DEVICE_FAULT") << i;
    }
    for (const int i : {1, 5}) {
      EXPECT_EQ(result->outputs[i].values, harness.Expected("fine")) << i;
    }
  }
  EXPECT_TRUE(good.Get().ok());
}

TEST(PipelineDuplicatesTest, APassingFaultOfEqualInputsIsHealed) {
  PipelineHarness harness;
  harness.device.FailNext(1, absl::InternalError("hiccup"));
  const auto result = harness.Submit({"same", "same"}).Get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[1].values, harness.Expected("same"));
}

TEST(PipelineDuplicatesTest, CancellingOneCallerLeavesTheRowToTheOthers) {
  PipelineHarness harness;
  auto blocker = harness.Block();
  auto first = harness.Submit({"same"});
  auto second = harness.Submit({"same"});
  auto third = harness.Submit({"same"});
  harness.WaitForQueue(3);
  first.call->Cancel();  // before it is packed
  harness.device.LetThrough(1);
  EXPECT_TRUE(blocker.Get().ok());
  ASSERT_TRUE(harness.device.WaitForBatchesAtGate(1));
  second.call->Cancel();  // the row was its own first
  harness.device.OpenGate();
  EXPECT_EQ(ReasonOf(first.Get().status()), "CANCELLED_IN_QUEUE");
  EXPECT_EQ(ReasonOf(second.Get().status()), "CANCELLED_IN_QUEUE");
  const auto result = third.Get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0].values, harness.Expected("same"));
  EXPECT_EQ(LastRows(harness), 1);
  const auto seen = harness.observer.seen();
  EXPECT_EQ(seen.cancelled.at(Stage::kQueue), 1);
  EXPECT_EQ(seen.cancelled.at(Stage::kCompute), 1);
}

TEST(PipelineDuplicatesTest, AWindowIsNotTheTextOfTheSameTokens) {
  PipelineHarness::Settings settings;
  settings.max_batch_tokens = 256;
  PipelineHarness harness(settings);  // max_len 64
  auto blocker = harness.Block();
  PipelineRequest request =
      TextRequest({std::string(124, 'x'), std::string(62, 'x')});
  request.window_overlap = 0;
  request.output.normalize = true;
  auto pending = harness.Submit(std::move(request));
  harness.WaitForQueue(3);  // two equal windows, one text
  harness.device.OpenGate();
  const auto result = pending.Get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0].windows, 2);
  SequenceOutput normalized;
  normalized.normalize = true;
  EXPECT_EQ(result->outputs[1].values,
            harness.Expected(std::string(62, 'x'), normalized));
  harness.pipeline->WaitIdle(absl::InfiniteFuture());
  EXPECT_EQ(harness.observer.seen().duplicate_tokens, 64);
}

}  // namespace
}  // namespace encoderd
