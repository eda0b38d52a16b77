// Leaving with callers who still wait, and with callers who take nothing. The
// device's gate is in the test's hand.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "server/base/steady_time.h"
#include "tests/integration/stream_client.h"
#include "tests/support/loopback.h"
#include "tests/support/patience.h"
#include "tests/support/raw_http2.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

ServerConfig NoTime() {
  ServerConfig config = TestConfig();
  config.drain_timeout = absl::ZeroDuration();
  return config;
}

void ExpectDraining(const RpcError& error) {
  EXPECT_EQ(error.code, grpc::StatusCode::UNAVAILABLE) << error.message;
  EXPECT_EQ(error.reason, "DRAINING");
  EXPECT_TRUE(error.retry_delay.has_value());
}

TEST(DrainTest, WhoStillWaitsWhenTheTimeIsUpIsToldSo) {
  TestServer server({}, NoTime());
  server.model().device().CloseGate();
  constexpr int kCallers = 8;
  std::vector<grpc::Status> statuses(kCallers);
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      if (i % 2 == 0) {
        v1::EmbedResponse response;
        statuses[i] = server.Embed(TextRequest({"accepted"}), &response);
      } else {
        v1::EncodeRequest request;
        request.add_inputs()->set_text("accepted");
        v1::EncodeResponse response;
        statuses[i] = server.Encode(request, &response);
      }
    });
  }
  // One at the gate, the others behind it: all were accepted.
  const auto accepted = [&] {
    return TestServer::Sample(server.MetricsText(),
                              "encoderd_input_tokens_count") == kCallers;
  };
  EXPECT_TRUE(Eventually(accepted));
  EXPECT_FALSE(server.server().Drain());
  for (std::thread& caller : callers) caller.join();
  for (const grpc::Status& status : statuses) {
    ExpectDraining(ReadError(status));
  }
  const std::string metrics = server.MetricsText();
  EXPECT_EQ(TestServer::Sample(metrics,
                               "encoderd_requests_total{code=\"UNAVAILABLE\"}"),
            kCallers);
  EXPECT_EQ(server.server().in_flight(), 0);
  // What the device still gives comes too late and harms nothing.
  server.model().device().OpenGate();
}

TEST(DrainTest, AStreamIsToldOfEachRequestThatIsNotAnsweredInTime) {
  TestServer server({}, NoTime());
  Stream stream(&server);
  v1::EmbedResponse response;
  ASSERT_TRUE(stream.Write(Request("answered", {"a"})));
  ASSERT_TRUE(stream.Read(&response));
  EXPECT_EQ(response.request_id(), "answered");

  server.model().device().CloseGate();
  ASSERT_TRUE(stream.Write(Request("at the gate", {"b"})));
  ASSERT_TRUE(server.model().device().WaitForBatchesAtGate(1));
  ASSERT_TRUE(stream.Write(Request("queued", {"c"})));
  ASSERT_TRUE(Eventually([&] { return Queued(server) == 1; }));
  EXPECT_FALSE(server.server().Drain());
  const auto answers = stream.ReadAll();
  EXPECT_EQ(answers.size(), 2);
  for (const char* id : {"at the gate", "queued"}) {
    ASSERT_EQ(answers.count(id), 1) << id;
    ExpectDraining(ReadError(answers.at(id).error()));
  }
  ExpectDraining(ReadError(stream.Finish()));
  EXPECT_EQ(Streamed(server, "UNAVAILABLE"), 2);
  EXPECT_EQ(server.server().in_flight(), 0);
  EXPECT_FALSE(server.model().device().SawToken(FakeTokenizer::Id('c')));
  server.model().device().OpenGate();
}

// gRPC drops a connection when a write fails, without reading what came before.
// A caller that writes after the close would miss the second GOAWAY, which
// tells it that its call was not read and may be sent elsewhere.
TEST(DrainTest, ACallerMayWriteUntilItHasReadThatTheServerLeaves) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration) {
    TestServer server;
    RawHttp2 caller(server.server().grpc_port());
    EXPECT_TRUE(caller.ReadUntil(RawHttp2::kSettings));
    std::thread leaving([&server] { EXPECT_TRUE(server.server().Drain()); });
    EXPECT_TRUE(caller.ReadUntil(RawHttp2::kGoAway));
    EXPECT_EQ(caller.payload().substr(0, 4), "\x7f\xff\xff\xff");
    bool open = true;
    for (int i = 0; i < 3; ++i) {
      absl::SleepFor(absl::Milliseconds(30));  // as a caller without a core
      open = open && caller.TryPing();
    }
    EXPECT_TRUE(caller.ReadUntil(RawHttp2::kGoAway));
    EXPECT_EQ(caller.payload().substr(0, 4), std::string(4, '\0'));
    leaving.join();
    return open;
  }));
}

// The end of a call follows its answer, which waits forever: only the server's
// own patience ends it.
TEST(DrainTest, AWatchThatNeverReadsHoldsUpLeavingForABoundedTime) {
  TestServer server;
  RawHttp2 deaf(server.server().grpc_port());
  deaf.Call("/grpc.health.v1.Health/Watch", "");
  ASSERT_TRUE(deaf.ReadHeaders());  // its answer is behind them
  EXPECT_TRUE(server.server().Drain());
  uint8_t type = 0;
  do {
    type = deaf.ReadFrame();
    EXPECT_NE(type, RawHttp2::kData);
  } while (type != RawHttp2::kEnded);
}

TEST(DrainTest, WatchesThatReadOneByOneHoldUpLeavingForABoundedTime) {
  TestServer server;
  RawHttp2 slow(server.server().grpc_port());
  std::vector<uint32_t> watches;
  for (int i = 0; i < 200; ++i) {
    watches.push_back(slow.Call("/grpc.health.v1.Health/Watch", ""));
    ASSERT_TRUE(slow.ReadHeaders());
  }
  std::atomic<bool> left{false};
  size_t read = 0;
  std::thread reader([&] {
    // Each sooner than the patience with one ends.
    for (; read < watches.size() && !left && slow.TryWiden(watches[read]);
         ++read) {
      absl::SleepFor(absl::Milliseconds(200));
    }
  });
  EXPECT_TRUE(server.server().Drain());
  left = true;
  reader.join();
  EXPECT_LT(read, watches.size());
}

// The server leaves although `threads` threads do `again` until it has left.
void ExpectToLeaveDespite(TestServer* server, int threads,
                          const std::function<void()>& again) {
  std::atomic<bool> left{false};
  std::atomic<int> given_up{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < threads; ++i) {
    callers.emplace_back([&] {
      const absl::Time last = SteadyNow() + kPatience;
      while (!left && SteadyNow() < last) again();
      if (!left) ++given_up;
    });
  }
  EXPECT_TRUE(server->server().Drain());
  left = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(given_up, 0);
}

TEST(DrainTest, CallsThatAreRefusedDoNotHoldUpLeaving) {
  ServerConfig config = TestConfig();
  config.drain_timeout = absl::Hours(1);
  TestServer server({}, config);
  // The last calls end with gRPC's own errors, which nobody reads.
  const auto stub = v1::Encoder::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", server.server().grpc_port()),
      grpc::InsecureChannelCredentials()));
  ExpectToLeaveDespite(&server, 16, [&] {
    grpc::ClientContext context;
    v1::EmbedResponse response;
    stub->Embed(&context, TextRequest({"again"}), &response);
  });
}

TEST(DrainTest, AFloodOfConnectionsDoesNotHoldUpLeaving) {
  TestServer server;
  ExpectToLeaveDespite(&server, 4, [&] {
    const int fd = NewTcpSocket();
    ConnectLoopback(fd, server.server().grpc_port());
    const linger reset = {1, 0};  // no port is used up
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
  });
}

TEST(DrainTest, AStreamThatNeverReadsHoldsUpLeavingForABoundedTime) {
  TestServer server({}, NoTime());
  RawHttp2 deaf(server.server().grpc_port());
  deaf.Call("/encoderd.v1.Encoder/EmbedStream",
            Request("never read", {"a"}).SerializeAsString());
  ASSERT_TRUE(Eventually([&] { return Streamed(server, "OK") == 1; }));
  EXPECT_FALSE(server.server().Drain());
  EXPECT_EQ(server.server().in_flight(), 0);
  EXPECT_EQ(server.server().streams(), 0);
}

}  // namespace
}  // namespace encoderd
