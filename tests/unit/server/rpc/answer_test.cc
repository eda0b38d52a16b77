// Results -> the messages that callers get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/rpc/convert.h"
#include "server/rpc/wire.h"
#include "tests/support/fake_model.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

using ::testing::ElementsAre;

constexpr int32_t kMaxLen = 256;

// A served model that nothing is submitted to.
class AnswerTest : public ::testing::Test {
 protected:
  AnswerTest() {
    FakeModelOptions options;
    options.max_len = kMaxLen;
    served_.name = "fake";
    served_.model = std::make_shared<FakeModel>(options);
    served_.metrics = metrics_.ForModel("fake");
    environment_.metrics = &metrics_;
    environment_.api.limits.max_inputs = 8;
    environment_.api.limits.max_answer_bytes = 1 << 20;
  }

  template <typename Job, typename Request>
  Job MakeJob(Request request) const {
    return Job::Make(served_, environment_.api.limits, std::move(request))
        .value();
  }

  template <typename Message, typename Job, typename Result>
  Message Written(const Job& job, Result result) const {
    WrittenAnswer written;
    EXPECT_THAT(Write(environment_, job, std::move(result), &written), IsOk());
    Message message;
    EXPECT_THAT(ParseMessage(written.bytes, &message), IsOk());
    return message;
  }

  // Whether a figure of the stage "reply" has this value.
  bool ReplyHas(absl::string_view figure, int value) const {
    return absl::StrContains(
        metrics_.Text(),
        absl::StrCat("encoderd_stage_duration_seconds_", figure,
                     "{model=\"fake\",stage=\"reply\"} ", value, "\n"));
  }

 private:
  Metrics metrics_{{"fake"}, {{"Embed", true}}, ""};
  ServedModel served_;
  CallEnvironment environment_;
};

// No two times are alike.
PipelineResult OneOutput() {
  PipelineResult result;
  result.tokens = 7;
  result.tokenize_time = absl::Microseconds(1250);
  result.queue_time = absl::Microseconds(2500);
  result.compute_time = absl::Microseconds(3750);
  result.outputs.resize(1);
  result.outputs[0].values.assign(8, 0.5f);
  result.outputs[0].token_count = 7;
  return result;
}

void ExpectUsage(const v1::Usage& usage) {
  EXPECT_EQ(usage.tokens(), 7u);
  EXPECT_EQ(usage.tokenize_ms(), 1.25);
  EXPECT_EQ(usage.queue_ms(), 2.5);
  EXPECT_EQ(usage.compute_ms(), 3.75);
}

TEST_F(AnswerTest, OfEmbedHasItsUsageAndTheNamesOfItsRequest) {
  EmbedRequest request;
  request.inputs = {TextInput{"12345"}};
  request.request_id = "id-7";
  const auto job = MakeJob<EmbedJob>(request);
  const auto answer = Written<v1::EmbedResponse>(job, OneOutput());
  ExpectUsage(answer.usage());
  EXPECT_EQ(answer.request_id(), "id-7");
  EXPECT_EQ(answer.model(), "fake");
  EXPECT_EQ(answer.fingerprint(), std::string(16, '0'));
}

TEST_F(AnswerTest, OfEncodeHasItsUsageAndTheNamesOfItsRequest) {
  EncodeRequest request;
  request.inputs = {TextInput{"12345"}};
  request.request_id = "id-8";
  const auto job = MakeJob<EncodeJob>(request);
  const auto answer = Written<v1::EncodeResponse>(job, OneOutput());
  ExpectUsage(answer.usage());
  EXPECT_EQ(answer.request_id(), "id-8");
  EXPECT_EQ(answer.model(), "fake");
  EXPECT_EQ(answer.fingerprint(), std::string(16, '0'));
}

TEST_F(AnswerTest, OfTokenizeSaysWhatFitsUpToMaxLen) {
  TokenizeRequest request;
  request.inputs.assign(3, TextInput{"text"});
  const auto job = MakeJob<TokenizeJob>(request);
  PipelineResult result;
  result.encodings.resize(3);
  for (int i = 0; i < 3; ++i) {
    result.encodings[i].token_ids.assign(kMaxLen - 1 + i, 5);
  }
  const auto answer = Written<v1::TokenizeResponse>(job, std::move(result));
  EXPECT_EQ(answer.max_len(), static_cast<uint32_t>(kMaxLen));
  ASSERT_EQ(answer.inputs_size(), 3);
  EXPECT_TRUE(answer.inputs(0).fits());
  EXPECT_TRUE(answer.inputs(1).fits());
  EXPECT_EQ(answer.inputs(1).token_count(), static_cast<uint32_t>(kMaxLen));
  EXPECT_FALSE(answer.inputs(2).fits());
}

TEST_F(AnswerTest, OfInspectPositionsHasTheVerdictAndWhatItIsFrom) {
  const auto job = MakeJob<InspectJob>(InspectRequest());
  for (const auto& [verdict, name] :
       std::vector<std::pair<PositionVerdict, v1::PositionVerdict>>{
           {PositionVerdict::kUndecided, v1::POSITION_VERDICT_UNSPECIFIED},
           {PositionVerdict::kTrained, v1::POSITION_VERDICT_TRAINED},
           {PositionVerdict::kLooksRandom, v1::POSITION_VERDICT_LOOKS_RANDOM},
           {PositionVerdict::kPartlyTrained,
            v1::POSITION_VERDICT_PARTLY_TRAINED}}) {
    InspectAnswer result;
    result.figures.norms = {1, 2};
    result.figures.profile = {{4, 0.25, 0.125}};
    result.figures.verdict = verdict;
    result.figures.verdict_cosine = 0.75;
    result.figures.threshold = 0.5;
    result.figures.change_row = 77;
    const auto answer = Written<v1::InspectPositionsResponse>(job, result);
    EXPECT_EQ(answer.verdict(), name) << v1::PositionVerdict_Name(name);
    EXPECT_EQ(answer.change_row(), 77u);
    EXPECT_EQ(answer.verdict_cosine(), 0.75f);
    EXPECT_EQ(answer.threshold(), 0.5f);
    EXPECT_THAT(answer.norms(), ElementsAre(1.0f, 2.0f));
    ASSERT_EQ(answer.profile_size(), 1);
    EXPECT_EQ(answer.profile(0).distance(), 4u);
    EXPECT_EQ(answer.profile(0).mean_cosine(), 0.25f);
    EXPECT_EQ(answer.profile(0).mean_centered_cosine(), 0.125f);
  }
}

TEST_F(AnswerTest, WritingOneIsAStageOfItsCall) {
  EXPECT_TRUE(ReplyHas("count", 0));
  EXPECT_TRUE(ReplyHas("sum", 0));
  EmbedRequest embed;
  embed.inputs = {TextInput{"12345"}};
  Written<v1::EmbedResponse>(MakeJob<EmbedJob>(embed), OneOutput());
  EXPECT_TRUE(ReplyHas("count", 1));
  EXPECT_FALSE(ReplyHas("sum", 0));
  EncodeRequest encode;
  encode.inputs = {TextInput{"12345"}};
  Written<v1::EncodeResponse>(MakeJob<EncodeJob>(encode), OneOutput());
  EXPECT_TRUE(ReplyHas("count", 2));
  TokenizeRequest tokenize;
  tokenize.inputs = {TextInput{"12345"}};
  Written<v1::TokenizeResponse>(MakeJob<TokenizeJob>(tokenize),
                                PipelineResult());
  EXPECT_TRUE(ReplyHas("count", 3));
}

}  // namespace
}  // namespace encoderd
