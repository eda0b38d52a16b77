// What a request may hold, and that it is refused before it holds more.
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/pipeline/input_encoder.h"
#include "server/pipeline/pipeline.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

PipelineRequest TokenizeRequest(std::vector<std::string> texts) {
  PipelineRequest request = TextRequest(std::move(texts));
  request.ids_only.emplace().offsets = true;
  return request;
}

PipelineHarness::Settings QueueOf(int64_t tokens) {
  PipelineHarness::Settings settings;
  settings.options.max_queue_tokens = tokens;
  return settings;
}

TEST(PipelineBoundsTest, TokenizingIsBoundedByTheTokensOfTheQueue) {
  PipelineHarness harness(QueueOf(256));
  ASSERT_TRUE(harness.Tokenize(TokenizeRequest({std::string(254, 'x')})).ok());
  const auto refused = harness.Tokenize(
      TokenizeRequest({std::string(200, 'x'), std::string(53, 'y')}));
  ASSERT_EQ(ReasonOf(refused.status()), "REQUEST_TOO_LARGE");
  const auto detail = GetErrorDetail(refused.status());
  EXPECT_EQ(detail->metadata.at("request_tokens"), "257");
  EXPECT_EQ(detail->metadata.at("limit"), "256");
}

TEST(PipelineBoundsTest, TokenizingTakesItsEstimateFromTheQueueWhileItWaits) {
  PipelineHarness harness(QueueOf(256));
  harness.tokenizer.CloseGate();
  auto promise = std::make_shared<std::promise<absl::Status>>();
  harness.pipeline->Submit(
      TokenizeRequest({std::string(800, 'x')}),
      [promise](auto result) { promise->set_value(result.status()); });
  ASSERT_TRUE(harness.tokenizer.WaitForTextsAtGate(1));
  // A refusal is given from within the call.
  auto refused = std::make_shared<absl::Status>();
  harness.pipeline->Submit(
      TokenizeRequest({std::string(400, 'x')}),
      [refused](auto result) { *refused = result.status(); });
  ASSERT_EQ(ReasonOf(*refused), "QUEUE_FULL");
  EXPECT_EQ(GetErrorDetail(*refused)->metadata.at("queued_tokens"), "202");
  harness.tokenizer.OpenGate();
  EXPECT_EQ(ReasonOf(promise->get_future().get()), "REQUEST_TOO_LARGE");
  EXPECT_TRUE(harness.Tokenize(TokenizeRequest({"after it"})).ok());
}

TEST(PipelineBoundsTest, TokenizingIsRefusedWhereItsAnswerCannotFit) {
  PipelineHarness harness;
  PipelineRequest request = TokenizeRequest({"ab", std::string(100000, 'x')});
  request.answer = {4, 400023};
  const auto refused = harness.Tokenize(request);
  ASSERT_EQ(ReasonOf(refused.status()), "REQUEST_TOO_LARGE");
  const auto detail = GetErrorDetail(refused.status());
  EXPECT_EQ(detail->metadata.at("reply_bytes"), "400024");
  EXPECT_EQ(detail->metadata.at("limit"), "400023");

  request.answer = {4, 400024};
  const auto answered = harness.Tokenize(request);
  ASSERT_TRUE(answered.ok()) << answered.status();
  EXPECT_EQ((*answered)[1].offsets.size(), 100002u);
}

TEST(PipelineBoundsTest, StatesThatCannotBeSentAreNeverComputed) {
  PipelineHarness harness;
  PipelineRequest request = TextRequest({"abcd", "ef"});
  request.output.kind = SequenceOutput::Kind::kStates;
  request.answer = {32, 319};  // six tokens and four
  const auto refused = harness.Submit(request).Get();
  ASSERT_EQ(ReasonOf(refused.status()), "REQUEST_TOO_LARGE");
  const auto detail = GetErrorDetail(refused.status());
  EXPECT_EQ(detail->metadata.at("reply_bytes"), "320");
  EXPECT_EQ(detail->metadata.at("limit"), "319");
  EXPECT_EQ(harness.device.rows_computed(), 0);

  request.answer.max_bytes = 320;
  EXPECT_TRUE(harness.Submit(request).Get().ok());
  request.answer.max_bytes = 192;
  EXPECT_FALSE(harness.Submit(request).Get().ok());
  request.without_special_tokens = true;
  EXPECT_TRUE(harness.Submit(request).Get().ok());
  request.output.kind = SequenceOutput::Kind::kPooled;
  request.without_special_tokens = false;
  request.answer.max_bytes = 64;
  EXPECT_TRUE(harness.Submit(request).Get().ok());
  EXPECT_EQ(harness.device.rows_computed(), 6);
}

TEST(PipelineBoundsTest, TheFirstFaultsAreListedInWhateverOrderTheyAreFound) {
  const FakeTokenizer tokenizer;
  const InputEncoder encoder(&tokenizer, FakeLimits());
  const auto scratch = tokenizer.NewScratch();
  Encoding buffer;
  constexpr int kFaults = kMaxViolations + 4;
  for (const bool backwards : {false, true}) {
    PipelineRequest request =
        TextRequest(std::vector<std::string>(kFaults, std::string(100, 'x')));
    Inputs inputs(&request);
    for (int i = 0; i < kFaults; ++i) {
      inputs.Tokenize(backwards ? kFaults - 1 - i : i, encoder, scratch.get(),
                      &buffer);
    }
    const auto detail = GetErrorDetail(inputs.Check());
    ASSERT_TRUE(detail.has_value());
    ASSERT_EQ(detail->violations.size(), static_cast<size_t>(kMaxViolations));
    EXPECT_EQ(detail->violations.front().field, "inputs[0].text");
    EXPECT_EQ(detail->violations.back().field, "inputs[15].text");
    EXPECT_EQ(detail->metadata.at("more_inputs"), "19");
    EXPECT_EQ(detail->metadata.at("omitted_violations"), "4");
  }
}

TEST(PipelineBoundsTest, ARefusedTextKeepsNoIds) {
  const FakeTokenizer tokenizer;
  const InputEncoder encoder(&tokenizer, FakeLimits());
  const auto scratch = tokenizer.NewScratch();
  Encoding buffer;
  for (const bool spans : {false, true}) {
    EncodeRules rules;
    rules.without_special_tokens = spans;
    Input text = TextInput{std::string(100000, 'x')};
    TokenizedInput encoded;
    EXPECT_EQ(ReasonOf(encoder.Encode(&text, rules, scratch.get(), &buffer,
                                      &encoded)),
              "INPUT_TOO_LONG");
    EXPECT_EQ(encoded.token_count, 100002);
    EXPECT_EQ(encoded.sequence.token_ids.capacity(), 0u);
    EXPECT_EQ(encoded.span.capacity(), 0u);
  }
}

}  // namespace
}  // namespace encoderd
