// Answers that do not fit what was asked: the client ends with INTERNAL and
// says what the server returned.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/status_matchers.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeEncoderService;

constexpr char kFewer[] = "fewer";      // first of a call: a result is missing
constexpr char kShorter[] = "shorter";  // first of a call: its values are
constexpr char kEndless[] = "endless";  // first of a call: its sizes are
constexpr char kNoFault[] = "no fault";
constexpr size_t kLargeBytes = 4 << 20;

class BadAnswers : public FakeEncoderService {
 public:
  grpc::Status Embed(grpc::ServerContext* context,
                     const v1::EmbedRequest* request,
                     v1::EmbedResponse* response) override {
    const grpc::Status status =
        FakeEncoderService::Embed(context, request, response);
    const std::string& first = request->inputs(0).text();
    if (first == kFewer) response->mutable_embeddings()->RemoveLast();
    if (first == kShorter) {
      std::string* packed = response->mutable_embeddings(0)->mutable_packed();
      packed->resize(packed->size() - 2 * sizeof(float));
    }
    return status;
  }

  grpc::Status Encode(grpc::ServerContext* context,
                      const v1::EncodeRequest* request,
                      v1::EncodeResponse* response) override {
    const grpc::Status status =
        FakeEncoderService::Encode(context, request, response);
    const std::string& first = request->inputs(0).text();
    if (first == kFewer) response->mutable_states()->RemoveLast();
    if (first == kShorter) {
      std::string* packed = response->mutable_states(0)->mutable_packed();
      packed->resize(packed->size() - 1);
    }
    if (first == kEndless) {  // 2^62 values are 2^64 bytes, which is 0
      response->mutable_states(0)->set_rows(1u << 31);
      response->mutable_states(0)->set_columns(1u << 31);
      response->mutable_states(0)->clear_packed();
    }
    return status;
  }

  grpc::Status Tokenize(grpc::ServerContext* context,
                        const v1::TokenizeRequest* request,
                        v1::TokenizeResponse* response) override {
    const grpc::Status status =
        FakeEncoderService::Tokenize(context, request, response);
    response->mutable_inputs()->RemoveLast();
    return status;
  }

  // Answers a request for kNoFault with an error of code OK. Else it answers
  // the first of two requests, then one that was not sent, and ends. The first
  // answer is large: while the client copies it, the rest arrives.
  grpc::Status EmbedStream(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::EmbedResponse, v1::EmbedRequest>* stream)
      override {
    v1::EmbedRequest first, second;
    EXPECT_TRUE(stream->Read(&first));
    v1::EmbedResponse response;
    response.set_request_id(first.request_id());
    if (first.inputs(0).text() == kNoFault) {
      response.mutable_error();
      stream->Write(response);
      stream->Read(&second);  // the client ends the stream
      return grpc::Status::OK;
    }
    EXPECT_TRUE(stream->Read(&second));
    response.add_embeddings()->mutable_packed()->resize(kLargeBytes);
    stream->Write(response);
    response.Clear();
    response.set_request_id("not sent");
    stream->Write(response);
    return grpc::Status::OK;
  }
};

class BadAnswersTest : public ::testing::Test {
 protected:
  std::unique_ptr<Client> Connect(const ClientOptions& options = {}) {
    auto client = Client::Connect(service_.target(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  BadAnswers service_;
};

TEST_F(BadAnswersTest, CountsTheResults) {
  const auto fails = IsError(absl::StatusCode::kInternal,
                             "the server returned 2 results for 3 inputs");
  const std::vector<std::string> texts = {kFewer, "two", "three"};
  const auto client = Connect();
  EXPECT_THAT(client->Embed(texts).status(), fails);
  EXPECT_THAT(client->Encode(texts).status(), fails);
  EXPECT_THAT(client->Tokenize(texts).status(), fails);
}

TEST_F(BadAnswersTest, MixesNoVectorsOfTwoLengths) {
  const std::vector<std::string> texts = {"one", kShorter};
  ClientOptions options;
  options.texts_per_call = 1;
  EXPECT_THAT(Connect(options)->Embed(texts).status(),
              IsError(absl::StatusCode::kInternal,
                      "the server returned vectors of 6 and of 4 values"));
}

TEST_F(BadAnswersTest, CountsTheBytesOfStates) {
  const std::vector<std::string> texts = {kShorter};
  EXPECT_THAT(Connect()->Encode(texts).status(),
              IsError(absl::StatusCode::kInternal,
                      "the server returned 71 bytes for 3 x 6 states"));
  const std::vector<std::string> endless = {kEndless};
  EXPECT_THAT(Connect()->Encode(endless).status(),
              IsError(absl::StatusCode::kInternal,
                      "the server returned 0 bytes for 2147483648 x "
                      "2147483648 states"));
}

TEST_F(BadAnswersTest, LooksAtAnAnswerThatComesAboutWhenItsStreamEnds) {
  BulkOptions options;
  options.texts_per_call = 1;
  const auto client = Connect();
  for (int round = 0; round < 20; ++round) {  // it may come earlier, too
    int given = 0;
    const absl::Status status = client->EmbedBulk(
        {[&](v1::Input* input, absl::Status*) {
          input->set_text("one");
          return given++ < 2;
        }},
        {}, options, [](const BulkAnswer&) { return absl::OkStatus(); });
    EXPECT_THAT(status, IsError(absl::StatusCode::kInternal,
                                "the server answered request \"not sent\", "
                                "which is not in flight"));
  }
}

TEST_F(BadAnswersTest, AnErrorMustHaveACode) {
  bool given = false;
  const absl::Status status = Connect()->EmbedBulk(
      {[&](v1::Input* input, absl::Status*) {
        input->set_text(kNoFault);
        return !std::exchange(given, true);
      }},
      {}, {}, [](const BulkAnswer&) { return absl::OkStatus(); });
  EXPECT_THAT(status, IsError(absl::StatusCode::kInternal,
                              "the server sent an error with code OK"));
}

}  // namespace
}  // namespace encoderd::client
