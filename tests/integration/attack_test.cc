// Callers who buy memory, or hold up others, with few bytes.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/stream_client.h"
#include "tests/support/patience.h"
#include "tests/support/raw_http2.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

int64_t Unread(const TestServer& server) {
  return static_cast<int64_t>(
      TestServer::Sample(server.MetricsText(), "encoderd_unread_answer_bytes"));
}

// Two-byte fields that nobody knows: the parser keeps each at many times that.
std::string SpareFields(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += "\x78\x01";  // field 15, 1
  return bytes;
}

TEST(AttackTest, HealthRefusesWhatTheParserWouldPayFor) {
  TestServer server;
  for (const char* method : {"Check", "Watch"}) {
    const std::string path = std::string("/grpc.health.v1.Health/") + method;
    const RpcError large = ReadError(server.CallRaw(path, SpareFields(4000)));
    EXPECT_EQ(large.code, grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_EQ(large.reason, "REQUEST_TOO_LARGE") << method;
    EXPECT_EQ(large.metadata.at("request_bytes"), "8000");
    EXPECT_EQ(large.metadata.at("limit"), "4096");
    const RpcError garbage = ReadError(server.CallRaw(path, "\x0a\x7f"));
    EXPECT_EQ(garbage.reason, "MALFORMED_MESSAGE") << method;
  }
}

// A window of 0: what is answered lies in our memory.
TEST(AttackTest, AnswersThatNobodyReadsAreBounded) {
  FakeModelOptions fake;
  ServerConfig config = TestConfig();
  config.max_unread_answer_bytes = 1 << 20;
  TestServer server(fake, config);
  // Each answer holds a cosine matrix of all rows.
  v1::InspectPositionsRequest request;
  request.set_cosine(true);
  request.set_row_count(128);
  const std::string path = "/encoderd.v1.Encoder/InspectPositions";
  v1::InspectPositionsResponse whole;
  ASSERT_TRUE(server.CallRaw(path, request.SerializeAsString(), &whole).ok());
  const auto answer = static_cast<int64_t>(whole.ByteSizeLong());
  const auto calls =
      static_cast<int>(3 * config.max_unread_answer_bytes / answer);

  RawHttp2 deaf(server.server().grpc_port());
  for (int i = 0; i < calls; ++i) {
    deaf.HalfClose(deaf.Call(path, request.SerializeAsString()));
    const auto ended = [&] {
      return TestServer::Sample(
                 server.MetricsText(),
                 "encoderd_requests_total{method=\"InspectPositions\"}") ==
             i + 2;
    };
    ASSERT_TRUE(Eventually(ended));
  }
  EXPECT_GT(Unread(server), config.max_unread_answer_bytes / 2);
  EXPECT_LE(Unread(server), config.max_unread_answer_bytes);
  EXPECT_GT(
      TestServer::Sample(server.MetricsText(),
                         "encoderd_rejections_total{reason=\"QUEUE_FULL\""),
      0);
  // Whoever reads is answered.
  EXPECT_TRUE(server.CallRaw(path, request.SerializeAsString(), &whole).ok());
}

TEST(AttackTest, StreamsBeyondTheLimitAreRefused) {
  ServerConfig config = TestConfig();
  config.max_streams = 3;
  TestServer server({}, config);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(std::make_unique<Stream>(&server));
    v1::EmbedResponse response;
    ASSERT_TRUE(streams.back()->Write(Request("a", {"a"})));
    ASSERT_TRUE(streams.back()->Read(&response));
  }
  Stream more(&server);
  const RpcError error = ReadError(more.Finish());
  EXPECT_EQ(error.code, grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(error.reason, "QUEUE_FULL");
  EXPECT_EQ(error.metadata.at("limit"), "3");
  EXPECT_TRUE(error.retry_delay.has_value());
  streams[0]->HalfClose();
  EXPECT_TRUE(streams[0]->Finish().ok());
  EXPECT_TRUE(Eventually([&] { return server.server().streams() == 2; }));
  Stream again(&server);
  v1::EmbedResponse response;
  ASSERT_TRUE(again.Write(Request("b", {"b"})));
  EXPECT_TRUE(again.Read(&response));
}

}  // namespace
}  // namespace encoderd
