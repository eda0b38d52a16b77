#include "client/cpp/client.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/error.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/held_port.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using encoderd::testing::FakeVector;
using ::testing::ElementsAreArray;

class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto client = Client::Connect(service_.target());
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  FakeEncoderService service_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, EmbedsTextsIntoOneRowEach) {
  const auto matrix = client_->Embed({"one", "two words"});
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->rows, 2);
  EXPECT_EQ(matrix->columns, FakeEncoderService::kHiddenSize);
  EXPECT_THAT(matrix->row(0), ElementsAreArray(FakeVector("one")));
  EXPECT_THAT(matrix->row(1), ElementsAreArray(FakeVector("two words")));
  EXPECT_EQ(matrix->token_counts, (std::vector<uint32_t>{3, 4}));
  EXPECT_EQ(matrix->truncated, (std::vector<uint8_t>{0, 0}));
  EXPECT_TRUE(service_.last_options().packed());
  EXPECT_FALSE(service_.last_options().has_normalize());
}

TEST_F(ClientTest, SendsTheOptionsThatWereSet) {
  EmbedOptions options;
  options.pooling = v1::POOLING_CLS;
  options.normalize = false;
  options.dimensions = 4;
  options.truncate = v1::TRUNCATE_END;
  options.prompt_name = "query";
  const auto matrix = client_->Embed({"a b c d e f g h i"}, options);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->columns, 4);
  EXPECT_EQ(matrix->truncated, (std::vector<uint8_t>{1}));
  const v1::EmbedOptions sent = service_.last_options();
  EXPECT_EQ(sent.pooling(), v1::POOLING_CLS);
  EXPECT_TRUE(sent.has_normalize());
  EXPECT_FALSE(sent.normalize());
  EXPECT_EQ(sent.prompt_name(), "query");
}

TEST_F(ClientTest, AnswersAnEmptyListWithoutACall) {
  const auto matrix = client_->Embed({});
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->rows, 0);
  EXPECT_EQ(service_.embed_calls(), 0);
}

TEST_F(ClientTest, EncodesTokenStates) {
  const auto states = client_->Encode({"one", "two words"});
  ASSERT_TRUE(states.ok()) << states.status();
  ASSERT_EQ(states->size(), 2u);
  EXPECT_EQ((*states)[1].rows, 4);
  EXPECT_EQ((*states)[1].columns, FakeEncoderService::kHiddenSize);
  std::vector<float> expected;
  for (const char* text :
       {"two words#0", "two words#1", "two words#2", "two words#3"}) {
    for (const float value : FakeVector(text)) expected.push_back(value);
  }
  EXPECT_EQ((*states)[1].values, expected);
}

TEST_F(ClientTest, NamesTheLayerThatDoesNotExist) {
  EncodeOptions options;
  options.layer = 3;
  const auto states = client_->Encode({"one"}, options);
  EXPECT_EQ(states.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetErrorDetails(states.status())->reason, "LAYER_OUT_OF_RANGE");
}

TEST_F(ClientTest, TokenizesTextsOfAnyLength) {
  const auto inputs = client_->Tokenize({"one", "a b c d e f g h"});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_EQ(inputs->size(), 2u);
  EXPECT_EQ((*inputs)[0].tokens(1), "one");
  EXPECT_TRUE((*inputs)[0].fits());
  EXPECT_FALSE((*inputs)[1].fits());
}

TEST_F(ClientTest, ListsAndFindsModels) {
  const auto models = client_->Models();
  ASSERT_TRUE(models.ok()) << models.status();
  ASSERT_EQ(models->size(), 1u);
  EXPECT_EQ((*models)[0].name(), "fake");
  const auto model = client_->GetModel();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->max_len(), FakeEncoderService::kMaxLen);
  const auto missing = client_->GetModel("other");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(GetErrorDetails(missing.status())->metadata.at("model"), "other");
}

TEST_F(ClientTest, ReportsHealth) {
  auto health = client_->Health();
  ASSERT_TRUE(health.ok()) << health.status();
  EXPECT_EQ(*health, ServingStatus::kServing);
  service_.SetServing(false);
  health = client_->Health();
  ASSERT_TRUE(health.ok()) << health.status();
  EXPECT_EQ(*health, ServingStatus::kNotServing);
  EXPECT_EQ(client_->Health("no.such.Service").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ClientTest, TriesAgainWhileTheQueueIsFull) {
  service_.FailNext(3, FakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                 "the queue is full", "QUEUE_FULL", {}));
  const auto matrix = client_->Embed({"one"});
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(service_.embed_calls(), 4);
}

TEST_F(ClientTest, GivesUpAfterFiveAttemptsWithTheServersWords) {
  service_.FailNext(100, FakeError(grpc::StatusCode::UNAVAILABLE,
                                   "the server is draining", "DRAINING", {}));
  const auto matrix = client_->Embed({"one"});
  EXPECT_EQ(matrix.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(matrix.status().message(), "the server is draining");
  EXPECT_EQ(GetErrorDetails(matrix.status())->reason, "DRAINING");
  EXPECT_EQ(service_.embed_calls(), 5);
}

// `status` with a pause after which to call again.
grpc::Status Passing(const grpc::Status& status,
                     absl::Duration pause = absl::Milliseconds(5)) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(pause));
  retry.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(pause % absl::Seconds(1))));
  details.add_details()->PackFrom(retry);
  return grpc::Status(status.error_code(), status.error_message(),
                      details.SerializeAsString());
}

const grpc::Status& Loading() {
  static const auto& status = *new grpc::Status(
      Passing(FakeError(grpc::StatusCode::UNAVAILABLE,
                        "a model is still loading", "LOADING", {})));
  return status;
}

TEST_F(ClientTest, WaitsLongerThanFiveAttemptsWhileTheModelLoads) {
  service_.FailNext(7, Loading());
  const auto matrix = client_->Embed({"one"});
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_THAT(matrix->row(0), ElementsAreArray(FakeVector("one")));
  EXPECT_EQ(service_.embed_calls(), 8);
}

TEST_F(ClientTest, WaitsLongerThanFiveAttemptsForAFullQueue) {
  service_.FailNext(7,
                    Passing(FakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                      "the queue is full", "QUEUE_FULL", {})));
  ASSERT_TRUE(client_->Embed({"one"}).ok());
  EXPECT_EQ(service_.embed_calls(), 8);
}

TEST_F(ClientTest, SaysThatTheModelLoadsWhereTheTimeoutEndsTheWait) {
  service_.FailNext(1 << 30, Loading());
  // More time, until a slow machine gets past gRPC's own attempts.
  for (int seconds = 3; seconds < 100; seconds *= 2) {
    ClientOptions options;
    options.timeout = absl::Seconds(seconds);
    const auto client = Client::Connect(service_.target(), options);
    ASSERT_TRUE(client.ok()) << client.status();
    const absl::Status status = (*client)->Embed({"one"}).status();
    if (absl::IsDeadlineExceeded(status)) continue;
    EXPECT_EQ(status.message(), "a model is still loading");
    EXPECT_EQ(GetErrorDetails(status)->reason, "LOADING");
    return;
  }
  FAIL() << "only deadlines";
}

TEST_F(ClientTest, EndsAListWhenItIsStopped) {
  ClientOptions options;
  int asked = 0;
  options.stop = [&asked] { return ++asked > 3; };
  const auto client = Client::Connect(service_.target(), options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->Embed({"~~never"}).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(ClientTest, WaitsForAModelThatLoadsOnlyUntilItIsStopped) {
  service_.RefuseModels(
      Passing(FakeError(grpc::StatusCode::UNAVAILABLE,
                        "a model is still loading", "LOADING", {}),
              absl::Hours(1)));
  ClientOptions options;
  options.timeout = absl::Hours(2);
  options.stop = [] { return true; };
  const auto client = Client::Connect(service_.target(), options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->GetModel().status(), absl::CancelledError("stopped"));
}

TEST_F(ClientTest, DoesNotTryAgainWhatTheCallerMustFix) {
  const auto matrix = client_->Embed({"a b c d e f g"});
  EXPECT_EQ(matrix.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(service_.embed_calls(), 1);
}

TEST_F(ClientTest, EndsACallAtItsDeadline) {
  ClientOptions options;
  options.timeout = absl::Milliseconds(50);
  const auto client = Client::Connect(service_.target(), options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->Embed({"~~never"}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ClientTest, RefusesAnAnswerPastItsLimit) {
  ClientOptions options;
  options.max_answer_bytes = 16;
  const auto client = Client::Connect(service_.target(), options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->Embed({"one"}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(ClientConnectTest, NamesTheOptionThatIsOutOfRange) {
  ClientOptions options;
  options.calls_in_flight = 0;
  EXPECT_EQ(Client::Connect("localhost:1", options).status().message(),
            "calls_in_flight is 0; it must be at least 1");
  EXPECT_EQ(Client::Connect("").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ClientConnectTest, SaysUnavailableWhereNobodyListens) {
  const HeldPort port;
  const auto client = Client::Connect(absl::StrCat("127.0.0.1:", port.port()));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->Embed({"one"}).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace encoderd::client
