// A second adapter: plain C++ in front of server/api. No protocol is needed to
// ask for vectors, to be refused, or to change one's mind.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "server/api/embed.h"
#include "server/api/encode.h"
#include "server/api/inspect.h"
#include "server/api/tokenize.h"
#include "tests/support/fake_model.h"
#include "tests/unit/server/pipeline/recording_observer.h"

namespace encoderd {
namespace {

const Caller kCaller = {1};

class AdapterTest : public ::testing::Test {
 protected:
  AdapterTest() {
    auto served = std::make_unique<ServedModel>();
    served->name = "fake";
    served->model = model_;
    served->observer = std::make_unique<RecordingObserver>();
    PipelineOptions options;
    options.max_queue_tokens = 1 << 20;
    std::vector<std::unique_ptr<Session>> sessions;
    sessions.push_back(*model_->NewSession({}));
    served->pipeline = std::make_unique<Pipeline>(
        &model_->tokenizer(), model_->info().limits, std::move(sessions),
        options, served->observer.get());
    models_.Add(std::move(served));
    api_.models = &models_;
    api_.limits.max_inputs = 8;
    api_.limits.max_answer_bytes = 1 << 20;
  }
  ~AdapterTest() override { model_->device().OpenGate(); }

  using Result = absl::StatusOr<PipelineResult>;

  // What the pipeline makes of a job, and the handle to cancel it by.
  template <typename Job>
  static std::future<Result> Submit(
      Job* job, std::shared_ptr<PipelineCall>* call = nullptr) {
    auto promise = std::make_shared<std::promise<Result>>();
    auto submitted = job->Submit(
        absl::InfiniteFuture(), kCaller,
        [promise](Result result) { promise->set_value(std::move(result)); });
    if (call != nullptr) *call = std::move(submitted);
    return promise->get_future();
  }

  template <typename Job, typename Request>
  absl::StatusOr<Job> Make(Request request) {
    const auto model = api_.models->Find(request.model);
    if (!model.ok()) return model.status();
    return Job::Make(**model, api_.limits, std::move(request));
  }

  absl::StatusOr<std::vector<Embedding>> Embed(EmbedRequest request) {
    auto job = Make<EmbedJob>(std::move(request));
    if (!job.ok()) return job.status();
    Result result = Submit(&*job).get();
    if (!result.ok()) return result.status();
    return job->Answer(&result->outputs);
  }

  std::vector<float> Expected(const std::string& text) {
    Encoding encoding;
    EXPECT_TRUE(model_->tokenizer().Encode(text, {}, nullptr, &encoding).ok());
    TokenSequence sequence;
    sequence.token_ids = encoding.token_ids;
    SequenceOutput output;
    output.pooling = Pooling::kMean;
    output.normalize = true;
    return model_->device().Expected(sequence, model_->info().limits, output);
  }

  const std::shared_ptr<FakeModel> model_ =
      std::make_shared<FakeModel>(FakeModelOptions{});
  ModelRegistry models_;
  Api api_;
};

EmbedRequest Texts(std::vector<std::string> texts) {
  EmbedRequest request;
  for (std::string& text : texts) {
    request.inputs.push_back(TextInput{std::move(text)});
  }
  return request;
}

std::string ReasonOf(const absl::Status& status) {
  return GetErrorDetail(status).value_or(ErrorDetail()).reason;
}

TEST_F(AdapterTest, TextsBecomeTheirVectors) {
  const auto answer = Embed(Texts({"abc", "de"}));
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->size(), 2u);
  EXPECT_EQ((*answer)[0].values, Expected("abc"));
  EXPECT_EQ((*answer)[1].values, Expected("de"));
  EXPECT_EQ((*answer)[0].token_count, 5);
}

TEST_F(AdapterTest, FewDimensionsAsInt8AreAByteEachAndOneScale) {
  EmbedRequest request = Texts({"abc"});
  request.options.dimensions = 4;
  request.options.normalize = false;
  request.options.encoding = EncodingChoice::kInt8;
  const auto answer = Embed(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE((*answer)[0].values.empty());
  EXPECT_EQ((*answer)[0].encoded.size(), 4u);
  EXPECT_GT((*answer)[0].scale, 0);
}

TEST_F(AdapterTest, ARefusalNamesFieldValueAndLimit) {
  EmbedRequest request = Texts({"abc"});
  request.options.dimensions = 9;
  const absl::Status status = Embed(request).status();
  EXPECT_EQ(status.message(), "options.dimensions is 9; this model has 8");
  const auto detail = GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "INVALID_OPTION");
  EXPECT_EQ(detail->field, "options.dimensions");
  EXPECT_EQ(detail->metadata.at("limit"), "8");
}

TEST_F(AdapterTest, AChoiceThatIsNotKnownIsRefusedNotTakenForItsDefault) {
  EmbedRequest request = Texts({"abc"});
  request.options.pooling = static_cast<PoolingChoice>(7);
  EXPECT_EQ(Embed(request).status().message(),
            "options.pooling is 7; this server knows 0 to 6");
  request.options.pooling = static_cast<PoolingChoice>(-1);
  EXPECT_EQ(Embed(request).status().message(),
            "options.pooling is -1; this server knows 0 to 6");
}

TEST_F(AdapterTest, OneInputAtFaultLeavesTheOthersTheirVectors) {
  EmbedRequest request = Texts({"abc", "", "de"});
  request.options.on_error = OnErrorChoice::kPerInput;
  const auto answer = Embed(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)[0].values, Expected("abc"));
  EXPECT_EQ(ReasonOf((*answer)[1].status), "EMPTY_INPUT");
  EXPECT_TRUE((*answer)[1].values.empty());
  EXPECT_EQ((*answer)[2].values, Expected("de"));
}

TokenSequence IdsOfLength(int64_t count) {
  TokenSequence sequence;
  sequence.token_ids.assign(count, FakeTokenizer::Id('x'));
  return sequence;
}

TEST_F(AdapterTest, TokenIdsAreNeverCutWhateverIsAskedFor) {
  const int64_t max_len = model_->info().limits.max_len;
  for (const TruncateChoice truncate :
       {TruncateChoice::kNone, TruncateChoice::kStart, TruncateChoice::kEnd}) {
    EmbedRequest request;
    request.inputs = {IdsOfLength(max_len), IdsOfLength(max_len + 1)};
    request.options.truncate = truncate;
    const absl::Status status = Embed(request).status();
    EXPECT_EQ(ReasonOf(status), "INPUT_TOO_LONG");
    EXPECT_EQ(GetErrorDetail(status)->field, "inputs[1].tokens.ids");
    EncodeRequest states;
    states.inputs = request.inputs;
    states.truncate = truncate;
    EXPECT_EQ(ReasonOf(Make<EncodeJob>(states).status()), "INPUT_TOO_LONG");
  }
  EmbedRequest windows;
  windows.inputs = {IdsOfLength(max_len + 1)};
  windows.options.window_overlap = 8;
  EXPECT_EQ(ReasonOf(Embed(windows).status()), "INPUT_TOO_LONG");
}

TEST_F(AdapterTest, OverlongIdsAreRefusedNextToATextThatIsCut) {
  const int64_t max_len = model_->info().limits.max_len;
  EmbedRequest request = Texts({std::string(max_len, 'x')});
  request.inputs.push_back(IdsOfLength(max_len + 1));
  request.inputs.push_back(IdsOfLength(max_len));
  request.options.truncate = TruncateChoice::kEnd;
  request.options.on_error = OnErrorChoice::kPerInput;
  const auto answer = Embed(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE((*answer)[0].truncated);
  EXPECT_EQ((*answer)[0].token_count, max_len + 2);
  EXPECT_EQ(ReasonOf((*answer)[1].status), "INPUT_TOO_LONG");
  EXPECT_TRUE((*answer)[1].values.empty());
  EXPECT_TRUE((*answer)[2].status.ok());
  EXPECT_FALSE((*answer)[2].truncated);
}

TEST_F(AdapterTest, AModelThatIsNotServedIsNotFound) {
  EmbedRequest request = Texts({"abc"});
  request.model = "other";
  const absl::Status status = Embed(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(status), "MODEL_NOT_FOUND");
}

TEST_F(AdapterTest, ACancelledRequestIsAnsweredAsCancelled) {
  model_->device().CloseGate();
  auto first = Make<EmbedJob>(Texts({"first"}));
  ASSERT_TRUE(first.ok());
  auto blocking = Submit(&*first);
  ASSERT_TRUE(model_->device().WaitForBatchesAtGate(1));
  auto job = Make<EmbedJob>(Texts({"second"}));
  ASSERT_TRUE(job.ok());
  std::shared_ptr<PipelineCall> call;
  auto waiting = Submit(&*job, &call);
  call->Cancel();
  model_->device().OpenGate();
  EXPECT_EQ(ReasonOf(waiting.get().status()), "CANCELLED_IN_QUEUE");
  EXPECT_TRUE(blocking.get().ok());
}

TEST_F(AdapterTest, StatesAndIdsComeTheSameWay) {
  EncodeRequest request;
  request.inputs = {TextInput{"abc"}};
  auto encode = Make<EncodeJob>(request);
  ASSERT_TRUE(encode.ok());
  const Result states = Submit(&*encode).get();
  ASSERT_TRUE(states.ok()) << states.status();
  EXPECT_EQ(states->outputs[0].rows, 5);
  EXPECT_EQ(states->outputs[0].values.size(),
            static_cast<size_t>(5 * encode->columns()));

  auto tokenize = Make<TokenizeJob>(TokenizeRequest{"", {TextInput{"abc"}}});
  ASSERT_TRUE(tokenize.ok());
  const Result ids = Submit(&*tokenize).get();
  ASSERT_TRUE(ids.ok()) << ids.status();
  ASSERT_EQ(ids->encodings.size(), 1u);
  EXPECT_EQ(ids->encodings[0].token_ids.size(), 5u);
}

TEST_F(AdapterTest, RowsOfThePositionTableAreMeasuredOnAnotherThread) {
  InspectRequest request;
  request.row_count = 4;
  request.cosine = true;
  const auto job = Make<InspectJob>(request);
  ASSERT_TRUE(job.ok()) << job.status();
  std::promise<absl::StatusOr<InspectAnswer>> promise;
  std::thread::id thread;
  job->Submit(absl::InfiniteFuture(), kCaller,
              [&](absl::StatusOr<InspectAnswer> answer) {
                thread = std::this_thread::get_id();
                promise.set_value(std::move(answer));
              });
  const auto answer = promise.get_future().get();
  EXPECT_NE(thread, std::this_thread::get_id());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->figures.norms.size(), 4u);
  EXPECT_EQ(answer->cosine.size(), 16u);
  EXPECT_TRUE(answer->values.empty());

  request.first_row = 512;
  EXPECT_EQ(ReasonOf(Make<InspectJob>(request).status()), "ROWS_OUT_OF_RANGE");
}

TEST_F(AdapterTest, WhatCannotBeMeasuredAnyMoreIsAnsweredAtOnce) {
  const auto job = Make<InspectJob>(InspectRequest());
  ASSERT_TRUE(job.ok()) << job.status();
  (*models_.Find(""))->pipeline->StartDraining();
  absl::Status status;
  const auto call =
      job->Submit(absl::InfiniteFuture(), kCaller,
                  [&](const absl::StatusOr<InspectAnswer>& answer) {
                    status = answer.status();
                  });
  EXPECT_EQ(ReasonOf(status), "DRAINING");
  EXPECT_EQ(call, nullptr);
}

}  // namespace
}  // namespace encoderd
