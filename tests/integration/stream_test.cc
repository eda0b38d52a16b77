// EmbedStream: matching by id, the bits, errors in place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/integration/stream_client.h"
#include "tests/support/patience.h"

namespace encoderd {
namespace {

TEST(StreamTest, AnswersEveryRequestOnceWithTheBitsThatItHasAlone) {
  TestServer server;
  Stream stream(&server);
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(stream.Write(
          Request(absl::StrCat("r", i), {absl::StrCat("text ", i), "same"})));
    }
    stream.HalfClose();
  });
  const auto answers = stream.ReadAll();
  writer.join();
  EXPECT_TRUE(stream.Finish().ok());
  ASSERT_EQ(answers.size(), 300);
  for (int i = 0; i < 300; ++i) {
    const v1::EmbedResponse& answer = answers.at(absl::StrCat("r", i));
    EXPECT_FALSE(answer.has_error());
    ASSERT_EQ(answer.embeddings_size(), 2);
    EXPECT_EQ(Floats(answer.embeddings(0)),
              server.Expected(absl::StrCat("text ", i)));
    EXPECT_EQ(Floats(answer.embeddings(1)), server.Expected("same"));
    EXPECT_EQ(answer.model(), "fake");
  }
  EXPECT_EQ(Streamed(server, "OK"), 300);
  EXPECT_TRUE(Eventually([&] { return server.server().in_flight() == 0; }));
}

TEST(StreamTest, OptionsHoldWithinAStream) {
  TestServer server;
  Stream stream(&server);
  v1::EmbedRequest request = Request("bits", {"a"});
  request.mutable_options()->set_encoding(v1::ENCODING_UBINARY);
  ASSERT_TRUE(stream.Write(request));
  request = Request("errors", {"a", Letters(257)});
  request.mutable_options()->set_on_error(v1::ON_ERROR_PER_INPUT);
  ASSERT_TRUE(stream.Write(request));
  stream.HalfClose();
  const auto answers = stream.ReadAll();
  EXPECT_EQ(answers.at("bits").embeddings(0).packed().size(), 1);
  EXPECT_EQ(Floats(answers.at("errors").embeddings(0)), server.Expected("a"));
  EXPECT_TRUE(answers.at("errors").embeddings(1).has_error());
  EXPECT_FALSE(answers.at("errors").has_error());
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(StreamTest, AnEmptyStreamEndsWell) {
  TestServer server;
  Stream stream(&server);
  stream.HalfClose();
  EXPECT_THAT(stream.ReadAll(), ::testing::IsEmpty());
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(StreamTest, ARequestThatFailsIsAnsweredAndTheStreamContinues) {
  TestServer server;
  Stream stream(&server);
  v1::EmbedRequest unknown = Request("unknown", {"a"});
  unknown.set_model("nobody");
  v1::EmbedRequest empty = Request("empty", {});
  for (const v1::EmbedRequest& request :
       {Request("first", {"a"}), Request("long", {"a", Letters(257)}), unknown,
        empty, Request("", {"a"}), Request("last", {"b"})}) {
    ASSERT_TRUE(stream.Write(request));
  }
  stream.HalfClose();
  const auto answers = stream.ReadAll();
  EXPECT_TRUE(stream.Finish().ok());
  ASSERT_EQ(answers.size(), 6);
  EXPECT_EQ(Floats(answers.at("first").embeddings(0)), server.Expected("a"));
  EXPECT_EQ(Floats(answers.at("last").embeddings(0)), server.Expected("b"));

  const RpcError too_long = ReadError(answers.at("long").error());
  EXPECT_EQ(too_long.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(too_long.reason, "INPUT_TOO_LONG");
  EXPECT_EQ(too_long.metadata.at("input_index"), "1");
  EXPECT_EQ(too_long.metadata.at("token_count"), "257");
  EXPECT_EQ(too_long.violations.at(0).first, "inputs[1].text");
  EXPECT_EQ(answers.at("long").embeddings_size(), 0);
  EXPECT_EQ(ReadError(answers.at("unknown").error()).reason, "MODEL_NOT_FOUND");
  EXPECT_EQ(ReadError(answers.at("empty").error()).reason, "NO_INPUTS");
  const RpcError no_id = ReadError(answers.at("").error());
  EXPECT_EQ(no_id.reason, "INVALID_OPTION");
  EXPECT_EQ(no_id.violations.at(0).first, "request_id");
  EXPECT_EQ(no_id.metadata.at("request_index"), "4");
  EXPECT_EQ(too_long.metadata.count("request_index"), 0);
  EXPECT_EQ(Streamed(server, "OK"), 2);
  EXPECT_EQ(Streamed(server, "INVALID_ARGUMENT"), 3);
  EXPECT_EQ(Streamed(server, "NOT_FOUND"), 1);
}

TEST(StreamTest, AMissingIdIsToldBeforeAnUnknownModelIs) {
  TestServer server;
  Stream stream(&server);
  v1::EmbedRequest request = Request("", {"a"});
  request.set_model("nobody");
  ASSERT_TRUE(stream.Write(request));
  stream.HalfClose();
  const auto answers = stream.ReadAll();
  EXPECT_TRUE(stream.Finish().ok());
  ASSERT_EQ(answers.size(), 1);
  const RpcError error = ReadError(answers.at("").error());
  EXPECT_EQ(error.reason, "INVALID_OPTION");
  EXPECT_EQ(error.violations.at(0).first, "request_id");
}

// A stream of any bytes.
class RawStream {
 public:
  explicit RawStream(TestServer* server) : stub_(server->channel()) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    stream_ =
        stub_.PrepareCall(&context_, "/encoderd.v1.Encoder/EmbedStream", &cq_);
    stream_->StartCall(nullptr);
    Next();
  }
  bool Write(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    stream_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    return Next();
  }
  bool HalfClose() {
    stream_->WritesDone(nullptr);
    return Next();
  }
  bool Read(v1::EmbedResponse* response) {
    grpc::ByteBuffer buffer;
    stream_->Read(&buffer, nullptr);
    grpc::Slice slice;
    return Next() && buffer.DumpToSingleSlice(&slice).ok() &&
           response->ParseFromArray(slice.begin(),
                                    static_cast<int>(slice.size()));
  }
  grpc::Status Finish() {
    grpc::Status status;
    stream_->Finish(&status, nullptr);
    Next();
    return status;
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return cq_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue cq_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

TEST(StreamTest, BytesThatAreNoMessageEndItAfterWhatWasTaken) {
  TestServer server;
  server.model().device().CloseGate();
  RawStream stream(&server);
  ASSERT_TRUE(stream.Write(Request("taken", {"a"}).SerializeAsString()));
  ASSERT_TRUE(server.model().device().WaitForBatchesAtGate(1));
  ASSERT_TRUE(stream.Write("\xff\xff\xff garbage"));
  ASSERT_TRUE(
      Eventually([&] { return Streamed(server, "INVALID_ARGUMENT") == 1; }));
  server.model().device().OpenGate();
  v1::EmbedResponse response;
  ASSERT_TRUE(stream.Read(&response));
  EXPECT_EQ(response.request_id(), "taken");
  EXPECT_EQ(Floats(response.embeddings(0)), server.Expected("a"));
  EXPECT_FALSE(stream.Read(&response));
  const RpcError error = ReadError(stream.Finish());
  EXPECT_EQ(error.reason, "MALFORMED_MESSAGE");
  EXPECT_EQ(error.metadata.at("request_index"), "1");
}

TEST(StreamTest, BytesThatDoNotParseAreAnsweredUnderTheIdThatTheyShow) {
  TestServer server;
  RawStream stream(&server);
  ASSERT_TRUE(
      stream.Write(Request("garbled", {"a"}).SerializeAsString() + "\xff"));
  ASSERT_TRUE(stream.Write(Request("next", {"a"}).SerializeAsString()));
  ASSERT_TRUE(stream.HalfClose());
  v1::EmbedResponse response;
  ASSERT_TRUE(stream.Read(&response));
  EXPECT_EQ(response.request_id(), "garbled");
  const RpcError error = ReadError(response.error());
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "MALFORMED_MESSAGE");
  EXPECT_EQ(error.metadata.count("request_index"), 0);
  ASSERT_TRUE(stream.Read(&response));
  EXPECT_EQ(response.request_id(), "next");
  EXPECT_EQ(Floats(response.embeddings(0)), server.Expected("a"));
  EXPECT_FALSE(stream.Read(&response));
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(StreamTest, ARequestWithoutAnIdThatCanBeUsedIsAnsweredByItsNumber) {
  TestServer server;
  RawStream stream(&server);
  std::string not_utf8 = Request("b?d", {"a"}).SerializeAsString();
  not_utf8[not_utf8.find("b?d") + 1] = '\xff';
  for (const std::string& bytes :
       {Request("", {"a"}).SerializeAsString(),
        Request(std::string(129, 'i'), {"a"}).SerializeAsString(), not_utf8,
        Request("fine", {"a"}).SerializeAsString()}) {
    ASSERT_TRUE(stream.Write(bytes));
  }
  ASSERT_TRUE(stream.HalfClose());
  const char* reasons[] = {"INVALID_OPTION", "INVALID_OPTION", "INVALID_UTF8"};
  v1::EmbedResponse response;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(stream.Read(&response));
    EXPECT_EQ(response.request_id(), "");
    const RpcError error = ReadError(response.error());
    EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(error.reason, reasons[i]);
    EXPECT_EQ(error.violations.at(0).first, "request_id");
    EXPECT_EQ(error.metadata.at("request_index"), absl::StrCat(i));
  }
  ASSERT_TRUE(stream.Read(&response));
  EXPECT_EQ(Floats(response.embeddings(0)), server.Expected("a"));
  EXPECT_FALSE(stream.Read(&response));
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(StreamTest, TwoRequestsOfOneIdGetTwoAnswersOfIt) {
  TestServer server;
  RawStream stream(&server);
  ASSERT_TRUE(stream.Write(Request("same", {"a"}).SerializeAsString()));
  ASSERT_TRUE(stream.Write(Request("same", {"b", "c"}).SerializeAsString()));
  ASSERT_TRUE(stream.HalfClose());
  int embeddings = 0;
  for (int i = 0; i < 2; ++i) {
    v1::EmbedResponse response;
    ASSERT_TRUE(stream.Read(&response));
    EXPECT_EQ(response.request_id(), "same");
    embeddings += response.embeddings_size();
  }
  EXPECT_EQ(embeddings, 3);
  v1::EmbedResponse response;
  EXPECT_FALSE(stream.Read(&response));
  EXPECT_TRUE(stream.Finish().ok());
}

// gRPC's own refusal, so without an ErrorInfo: it ends the whole call, and what
// waits there is not answered.
TEST(StreamTest, AMessageAboveTheLimitEndsTheStream) {
  ServerConfig config = TestConfig();
  config.max_message_bytes = 1 << 16;
  TestServer server({}, config);
  server.model().device().CloseGate();
  Stream stream(&server);
  ASSERT_TRUE(stream.Write(Request("waits", {"a"})));
  ASSERT_TRUE(server.model().device().WaitForBatchesAtGate(1));
  stream.Write(Request("huge", {std::string(1 << 16, 'x')}));
  v1::EmbedResponse response;
  EXPECT_FALSE(stream.Read(&response));
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("larger than max"));
  EXPECT_EQ(status.error_details(), "");
  server.model().device().OpenGate();
  EXPECT_TRUE(Eventually([&] { return server.server().in_flight() == 0; }));
  v1::EmbedResponse after;
  EXPECT_TRUE(server.Embed(TextRequest({"a"}), &after).ok());
}

TEST(StreamTest, ATextThatIsNotUtf8FailsItsRequestOnly) {
  TestServer server;
  RawStream stream(&server);
  std::string bad = Request("bad", {"good", "b?d"}).SerializeAsString();
  bad[bad.find("b?d") + 1] = '\xff';
  ASSERT_TRUE(stream.Write(bad));
  ASSERT_TRUE(stream.Write(Request("next", {"a"}).SerializeAsString()));
  v1::EmbedResponse response;
  ASSERT_TRUE(stream.Read(&response));
  EXPECT_EQ(response.request_id(), "bad");
  const RpcError error = ReadError(response.error());
  EXPECT_EQ(error.reason, "INVALID_UTF8");
  EXPECT_EQ(error.metadata.at("input_index"), "1");
  ASSERT_TRUE(stream.Read(&response));
  EXPECT_EQ(Floats(response.embeddings(0)), server.Expected("a"));
}

TEST(StreamTest, AFullQueueIsToldInPlaceAndTheStreamContinues) {
  ServerConfig config = TestConfig();
  config.max_queue_tokens = 512;
  TestServer server({}, config);
  server.model().device().CloseGate();
  Stream stream(&server);
  ASSERT_TRUE(stream.Write(Request("0", {Letters(256)})));
  ASSERT_TRUE(server.model().device().WaitForBatchesAtGate(1));
  ASSERT_TRUE(stream.Write(Request("1", {Letters(256)})));
  ASSERT_TRUE(Eventually([&] { return Queued(server) == 1; }));
  ASSERT_TRUE(stream.Write(Request("2", {Letters(256)})));
  v1::EmbedResponse response;
  ASSERT_TRUE(stream.Read(&response));
  EXPECT_EQ(response.request_id(), "2");
  const RpcError error = ReadError(response.error());
  EXPECT_EQ(error.code, grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(error.reason, "QUEUE_FULL");
  EXPECT_TRUE(error.retry_delay.has_value());
  server.model().device().OpenGate();
  stream.HalfClose();
  EXPECT_EQ(stream.ReadAll().size(), 2);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(StreamTest, ARequestAboveTheLimitOfAnAnswerFailsAlone) {
  FakeModelOptions fake;
  fake.hidden_size = 1024;
  ServerConfig config = TestConfig();
  config.max_message_bytes = 1 << 16;
  TestServer server(fake, config);
  Stream stream(&server);
  ASSERT_TRUE(
      stream.Write(Request("large", std::vector<std::string>(100, "a"))));
  ASSERT_TRUE(stream.Write(Request("small", {"a"})));
  stream.HalfClose();
  const auto answers = stream.ReadAll();
  EXPECT_EQ(ReadError(answers.at("large").error()).reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(Floats(answers.at("small").embeddings(0)), server.Expected("a"));
}

}  // namespace
}  // namespace encoderd
