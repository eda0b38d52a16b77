// The way of a request through the pipeline, over fakes.
#include "server/pipeline/pipeline.h"

#include <future>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "server/base/steady_time.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

TEST(PipelineTest, GivesEveryInputItsOwnVectorInOrder) {
  PipelineHarness harness;
  const std::vector<std::string> texts = {"one", "", "three", "four four"};
  const auto result = harness.Submit(texts).Get();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->outputs.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(result->outputs[i].values, harness.Expected(texts[i]));
    EXPECT_EQ(result->outputs[i].rows, 1);
    EXPECT_EQ(result->outputs[i].token_count,
              static_cast<int64_t>(texts[i].size()) + 2);
    EXPECT_FALSE(result->outputs[i].truncated);
  }
  EXPECT_EQ(result->tokens, 5 + 2 + 7 + 11);
}

TEST(PipelineTest, ItsTimesAreThoseOfTheDeviceAndOfTheWaitForIt) {
  PipelineHarness harness;
  harness.device.SetLatency(absl::Milliseconds(20), absl::ZeroDuration());
  const absl::Time begin = SteadyNow();
  const auto result = harness.Submit({"text"}).Get();
  const absl::Duration all = SteadyNow() - begin;
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->compute_time, absl::Milliseconds(20));
  EXPECT_LE(result->tokenize_time + result->queue_time + result->compute_time,
            all);
}

TEST(PipelineTest, WaitingForATokenizerThreadIsWaiting) {
  PipelineHarness harness;  // with one tokenizer thread
  harness.tokenizer.CloseGate();
  auto first = harness.Submit({"holds the thread"});
  ASSERT_TRUE(harness.tokenizer.WaitForTextsAtGate(1));
  auto second = harness.Submit({"waits for it"});
  const absl::Time begin = SteadyNow();
  absl::SleepFor(absl::Milliseconds(20));
  const absl::Time end = SteadyNow();
  harness.tokenizer.OpenGate();
  const auto result = second.Get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->queue_time, end - begin);
  // What the first one's thread did meanwhile is not its own waiting.
  const auto held = first.Get();
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_GE(held->tokenize_time, end - begin);
  const auto tokenizing =
      harness.observer.seen().durations.at(Stage::kTokenize);
  EXPECT_EQ(tokenizing.count, 2);
  EXPECT_GE(tokenizing.sum, 2 * (end - begin));
}

TEST(PipelineTest, TakesPairsAndTokenIdsBesidesTexts) {
  PipelineHarness harness;
  TokenSequence ids;
  ids.token_ids = {5, 6, 7};
  ids.segment_ids = {0, 1, 1};
  ids.position_ids = {3, 2, 9};
  PipelineRequest request;
  request.inputs = {TextInput{"a"}, PairInput{"b", "cd"}, ids};
  const auto result = harness.Submit(request).Get();
  ASSERT_TRUE(result.ok()) << result.status();
  TokenSequence pair;
  pair.token_ids = {1,
                    FakeTokenizer::Id('b'),
                    2,
                    FakeTokenizer::Id('c'),
                    FakeTokenizer::Id('d'),
                    2};
  pair.segment_ids = {0, 0, 0, 1, 1, 1};
  EXPECT_EQ(result->outputs[0].values, harness.Expected("a"));
  EXPECT_EQ(result->outputs[1].values,
            harness.device.Expected(pair, harness.limits, {}));
  EXPECT_EQ(result->outputs[2].values,
            harness.device.Expected(ids, harness.limits, {}));
}

TEST(PipelineTest, GivesTokenStatesWhereTheyAreAskedFor) {
  PipelineHarness harness;
  PipelineRequest request = TextRequest({"abc", "d"});
  request.output.kind = SequenceOutput::Kind::kStates;
  request.output.layer = 2;
  const auto result = harness.Submit(request).Get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0].rows, 5);
  EXPECT_EQ(result->outputs[1].rows, 3);
  EXPECT_EQ(result->outputs[0].values, harness.Expected("abc", request.output));
}

TEST(PipelineTest, SpreadsOneRequestOverAllSessions) {
  PipelineHarness::Settings settings;
  settings.sessions = 2;
  settings.max_batch_tokens = 4096;
  PipelineHarness harness(settings);
  harness.device.CloseGate();
  std::vector<std::string> texts = EightBytes(64);
  for (std::string& text : texts) text += " and 10 ok";
  auto pending = harness.Submit(std::move(texts));
  ASSERT_TRUE(harness.device.WaitForBatchesAtGate(2));
  harness.device.OpenGate();
  ASSERT_TRUE(pending.Get().ok());
  int64_t rows[2] = {0, 0};
  for (const auto& batch : harness.device.log()) {
    rows[batch.session] += static_cast<int64_t>(batch.rows.size());
  }
  EXPECT_EQ(rows[0] + rows[1], 64);
  EXPECT_GE(rows[0], 25);
  EXPECT_GE(rows[1], 25);
}

TEST(PipelineTest, SlicesALongRequestAcrossBatches) {
  PipelineHarness harness;  // 128 tokens per batch
  auto blocker = harness.Block();
  auto pending = harness.Submit(EightBytes(100));
  harness.WaitForQueue(100);
  harness.device.OpenGate();
  const auto result = pending.Get();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outputs.size(), 100u);
  for (const auto& batch : harness.device.log()) EXPECT_LE(batch.tokens, 128);
  EXPECT_EQ(harness.device.rows_computed(), 101);
}

TEST(PipelineTest, RefusesOneTokenTooManyAndNamesTheInput) {
  PipelineHarness harness;  // max_len 64: 62 bytes and 2 special tokens
  ASSERT_TRUE(harness.Submit({std::string(62, 'x')}).Get().ok());
  const auto refused =
      harness.Submit({"a", "b", "c", std::string(63, 'x')}).Get();
  ASSERT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.status().message(),
            "inputs[3] has 65 tokens; this model takes at most 64: split it, "
            "or set options.truncate (Encode: truncate) to TRUNCATE_END, or "
            "options.windows (Embed)");
  const auto detail = GetErrorDetail(refused.status());
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "INPUT_TOO_LONG");
  EXPECT_EQ(detail->field, "inputs[3].text");
  EXPECT_EQ(detail->metadata.at("input_index"), "3");
  EXPECT_EQ(detail->metadata.at("token_count"), "65");
  EXPECT_EQ(detail->metadata.at("max_tokens"), "64");
}

TEST(PipelineTest, RefusingOneRequestLeavesItsCompanyAlone) {
  PipelineHarness harness;
  auto blocker = harness.Block();
  auto good = harness.Submit({"good"});
  auto bad = harness.Submit({std::string(63, 'x')});
  EXPECT_EQ(ReasonOf(bad.Get().status()), "INPUT_TOO_LONG");
  harness.device.OpenGate();
  const auto result = good.Get();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outputs[0].values, harness.Expected("good"));
}

TEST(PipelineTest, CutsOnlyWhenAskedAndSaysSo) {
  PipelineHarness harness;
  const std::string text = std::string(60, 'a') + std::string(40, 'b');
  PipelineRequest request = TextRequest({text, "short"});
  request.truncate = TruncateMode::kEnd;
  auto result = harness.Submit(request).Get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->outputs[0].truncated);
  EXPECT_EQ(result->outputs[0].token_count, 102);
  EXPECT_EQ(result->outputs[0].values,
            harness.Expected(std::string(60, 'a') + "bb"));
  EXPECT_FALSE(result->outputs[1].truncated);
  EXPECT_EQ(result->tokens, 64 + 7);

  request.truncate = TruncateMode::kStart;
  result = harness.Submit(request).Get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0].values,
            harness.Expected(std::string(22, 'a') + std::string(40, 'b')));
}

TEST(PipelineTest, ListsTheFirstViolationsAndCountsTheRest) {
  PipelineHarness::Settings settings;
  settings.options.tokenizer_threads = 3;
  PipelineHarness harness(settings);
  std::vector<std::string> texts(1000, std::string(80, 'x'));
  texts[0] = "fine";
  const auto result = harness.Submit(texts).Get();
  ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(result.status().message(),
            "inputs[1] has 82 tokens; this model takes at most 64 (and 998 "
            "more): split it, or set options.truncate (Encode: truncate) to "
            "TRUNCATE_END, or options.windows (Embed)");
  const auto detail = GetErrorDetail(result.status());
  ASSERT_EQ(detail->violations.size(), size_t{kMaxViolations});
  for (int i = 0; i < kMaxViolations; ++i) {
    EXPECT_EQ(detail->violations[i].field,
              "inputs[" + std::to_string(i + 1) + "].text");
  }
  EXPECT_EQ(detail->metadata.at("omitted_violations"), "983");
}

TEST(PipelineTest, RefusesARequestWithoutInputs) {
  PipelineHarness harness;
  const auto result = harness.Submit(PipelineRequest{}).Get();
  EXPECT_EQ(ReasonOf(result.status()), "NO_INPUTS");
}

TEST(PipelineTest, ToldOfAThrowingTokenizerItAnswersAndLivesOn) {
  PipelineHarness harness;
  const auto result = harness.Submit({"throw"}).Get();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ReasonOf(result.status()), "INTERNAL_FAULT");
  EXPECT_TRUE(harness.Submit({"next"}).Get().ok());
}

TEST(PipelineTest, TokenizesWithoutComputing) {
  PipelineHarness harness;
  PipelineRequest request;
  TokenSequence ids;
  ids.token_ids = {7, 8};
  request.inputs = {TextInput{"ab"}, TextInput{std::string(500, 'x')}, ids};
  request.ids_only.emplace().offsets = true;
  const auto result = harness.Tokenize(request);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->size(), 3u);
  EXPECT_EQ((*result)[0].token_ids, FakeIds("ab").token_ids);
  EXPECT_EQ((*result)[0].offsets[2].begin, 1);
  EXPECT_EQ((*result)[1].token_ids.size(), 502u);  // past max_len, on purpose
  EXPECT_EQ((*result)[2].token_ids, ids.token_ids);
  EXPECT_EQ((*result)[2].segment_ids.size(), 2u);
  EXPECT_EQ(harness.device.rows_computed(), 0);
}

TEST(PipelineTest, RefusesWorkOnceDrainingAndFinishesWhatItHas) {
  PipelineHarness harness;
  auto accepted = harness.Block();
  harness.pipeline->StartDraining();
  const auto refused = harness.Submit({"late"}).Get();
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(refused.status()), "DRAINING");
  EXPECT_EQ(harness.pipeline->in_flight(), 1);
  EXPECT_FALSE(
      harness.pipeline->WaitIdle(SteadyNow() + absl::Milliseconds(20)));
  harness.device.OpenGate();
  EXPECT_TRUE(accepted.Get().ok());
  EXPECT_TRUE(harness.pipeline->WaitIdle(absl::InfiniteFuture()));
  EXPECT_EQ(harness.pipeline->in_flight(), 0);
}

TEST(PipelineTest, ReportsStagesTokensAndBatches) {
  PipelineHarness harness;
  ASSERT_TRUE(harness.Submit({"abc", "de"}).Get().ok());
  harness.pipeline->WaitIdle(absl::InfiniteFuture());
  const RecordingObserver::Seen seen = harness.observer.seen();
  EXPECT_EQ(seen.sequences, 2);
  EXPECT_EQ(seen.input_tokens, 5 + 4);
  EXPECT_EQ(seen.batch_tokens, 5 + 4);
  EXPECT_EQ(seen.durations.at(Stage::kTokenize).count, 1);
  EXPECT_EQ(seen.durations.at(Stage::kQueue).count, 1);
  EXPECT_EQ(seen.durations.at(Stage::kBatch).count, seen.batches);
  EXPECT_EQ(seen.durations.at(Stage::kCompute).count, seen.batches);
}

TEST(PipelineTest, ACallWhoseDoneThrowsIsOver) {
  PipelineHarness harness;
  for (const PipelineRequest& request :
       {PipelineRequest(), TextRequest({"computed"})}) {
    std::promise<void> called;
    harness.pipeline->Submit(request,
                             [&](const absl::StatusOr<PipelineResult>&) {
                               called.set_value();
                               throw std::runtime_error("told to throw");
                             });
    called.get_future().get();
    EXPECT_TRUE(harness.pipeline->WaitIdle(absl::InfiniteFuture()));
  }
  EXPECT_TRUE(harness.Submit({"another"}).Get().ok());
}

}  // namespace
}  // namespace encoderd
