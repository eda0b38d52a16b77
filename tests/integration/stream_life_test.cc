// EmbedStream: callers that do not read, cancel or wait too long; many of them;
// leaving. The device's gate is in the test's hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/base/steady_time.h"
#include "server/rpc/stream_window.h"
#include "server/rpc/unread_answers.h"
#include "tests/integration/stream_client.h"
#include "tests/support/patience.h"
#include "tests/support/raw_http2.h"

namespace encoderd {
namespace {

TEST(StreamLifeTest, ACallerThatDoesNotReadIsNotServedAndHoldsUpNobody) {
  constexpr int kRequests = 1000;
  FakeModelOptions fake;
  fake.hidden_size = 384;
  TestServer server(fake);
  const std::vector<std::string> texts(100, "a");

  Stream stalled(&server, absl::Seconds(120));
  std::thread writer([&] {
    for (int i = 0; i < kRequests; ++i) {
      ASSERT_TRUE(stalled.Write(Request(absl::StrCat(i), texts)));
    }
    stalled.HalfClose();
  });
  Stream reading(&server, absl::Seconds(120));
  v1::EmbedResponse response;
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(reading.Write(Request(absl::StrCat("other ", i), texts)));
    ASSERT_TRUE(reading.Read(&response));
    EXPECT_EQ(response.request_id(), absl::StrCat("other ", i));
  }
  reading.HalfClose();
  EXPECT_FALSE(reading.Read(&response));
  EXPECT_TRUE(reading.Finish().ok());
  // Held here, and as much again and more in the transport's windows.
  EXPECT_LE(Streamed(server, "OK"), 300 + 3 * StreamWindow::kMaxRequests);

  EXPECT_EQ(stalled.ReadAll().size(), kRequests);
  writer.join();
  EXPECT_TRUE(stalled.Finish().ok());
}

// What the server holds of a stream whose caller reads no answer at all.
struct HeldAnswers {
  int64_t requests = 0;
  int64_t bytes = 0;
};

// Once `is_full`. The caller sends `request` often, and its window for answers
// is 0.
HeldAnswers HeldOfADeafCaller(TestServer* server,
                              const v1::EmbedRequest& request,
                              const std::function<bool(HeldAnswers)>& is_full) {
  constexpr int kSent = 3 * StreamWindow::kMaxRequests;
  const std::string bytes = request.SerializeAsString();
  RawHttp2 deaf(server->server().grpc_port());
  const uint32_t stream = deaf.Call("/encoderd.v1.Encoder/EmbedStream", bytes);
  for (int i = 1; i < kSent; ++i) deaf.SendMessage(stream, bytes);
  HeldAnswers held;
  const auto look = [&] {
    held.requests = static_cast<int64_t>(Streamed(*server, "OK"));
    held.bytes = static_cast<int64_t>(TestServer::Sample(
        server->MetricsText(), "encoderd_unread_answer_bytes"));
  };
  EXPECT_TRUE(Eventually([&] {
    look();
    return is_full(held);
  })) << held.requests
      << " requests, " << held.bytes << " bytes";
  // Whatever would still be read is read while others are served.
  v1::EmbedResponse response;
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(server->Embed(TextRequest({"other"}), &response).ok());
  }
  look();
  return held;
}

TEST(StreamLifeTest, AStreamHoldsAtMostSixtyFourRequests) {
  TestServer server;
  const HeldAnswers held =
      HeldOfADeafCaller(&server, Request("1", {"a"}), [](HeldAnswers now) {
        return now.requests >= StreamWindow::kMaxRequests;
      });
  EXPECT_EQ(StreamWindow::kMaxRequests, 64);
  EXPECT_EQ(held.requests, StreamWindow::kMaxRequests);
  EXPECT_LT(held.bytes, StreamWindow::kMaxBytes / 2);
}

TEST(StreamLifeTest, AStreamReadsNoMoreOnceItHoldsAMebibyte) {
  FakeModelOptions fake;
  fake.hidden_size = 384;
  TestServer server(fake);
  const v1::EmbedRequest request =
      Request("1", std::vector<std::string>(20, "a"));
  v1::EmbedResponse response;
  ASSERT_TRUE(server.Embed(request, &response).ok());
  const auto answer = static_cast<int64_t>(response.ByteSizeLong());
  const HeldAnswers held = HeldOfADeafCaller(
      &server, request,
      [](HeldAnswers now) { return now.bytes >= StreamWindow::kMaxBytes; });
  EXPECT_EQ(StreamWindow::kMaxBytes, 1 << 20);
  EXPECT_GE(held.bytes, StreamWindow::kMaxBytes);
  // The last was read below the limit, by an estimate of what was in progress.
  EXPECT_LT(held.bytes, StreamWindow::kMaxBytes + 2 * answer);
  EXPECT_LT(held.requests, StreamWindow::kMaxRequests);
}

// A window of 0: the errors stay here. False: it took so long that calls were
// cut as unread.
bool ErrorsAreBounded() {
  const v1::EmbedRequest faulty =
      Request("1", std::vector<std::string>(20, ""));
  ServerConfig config = TestConfig();
  config.max_unread_answer_bytes = 16 << 10;
  TestServer server({}, config);
  v1::EmbedResponse answer;
  {
    Stream reading(&server);
    EXPECT_TRUE(reading.Write(faulty));
    EXPECT_TRUE(reading.Read(&answer));
    EXPECT_EQ(ReadError(answer.error()).reason, "EMPTY_INPUT");
    reading.HalfClose();
    EXPECT_TRUE(reading.Finish().ok());
  }
  EXPECT_TRUE(Eventually([&] { return server.server().streams() == 0; }));
  const auto error = static_cast<int64_t>(answer.ByteSizeLong());
  const int64_t fitting = config.max_unread_answer_bytes / error;
  EXPECT_GT(fitting, 3);

  const absl::Time begun = SteadyNow();
  const auto streams = static_cast<int>(3 * fitting);
  RawHttp2 deaf(server.server().grpc_port());
  for (int i = 0; i < streams; ++i) {
    deaf.Call("/encoderd.v1.Encoder/EmbedStream", faulty.SerializeAsString());
  }
  EXPECT_TRUE(Eventually(
      [&] { return Streamed(server, "INVALID_ARGUMENT") == 1 + streams; }));
  // A stream whose error found no room is over.
  const bool over =
      Eventually([&] { return server.server().streams() <= fitting; });
  const int64_t open = server.server().streams();
  const double unread =
      TestServer::Sample(server.MetricsText(), "encoderd_unread_answer_bytes");
  if (SteadyNow() - begun >= UnreadAnswers::kPatience) return false;
  EXPECT_TRUE(over);
  EXPECT_EQ(open, fitting);
  EXPECT_EQ(unread, fitting * error);
  // Whoever reads has its error.
  Stream reading(&server);
  EXPECT_TRUE(reading.Write(faulty));
  EXPECT_TRUE(reading.Read(&answer));
  EXPECT_EQ(ReadError(answer.error()).reason, "EMPTY_INPUT");
  return true;
}

TEST(StreamLifeTest, ErrorsThatNobodyReadsAreBoundedAsAnswersAre) {
  EXPECT_TRUE(
      GivenEnoughTime([](absl::Duration) { return ErrorsAreBounded(); }));
}

TEST(StreamLifeTest, AStreamWithoutRoomForAnErrorEndsWithQueueFull) {
  ServerConfig config = TestConfig();
  config.max_unread_answer_bytes = 1;
  TestServer server({}, config);
  // The first error goes to a connection without others; the second does not.
  const std::vector<std::string> texts(20, "");
  RawHttp2 deaf(server.server().grpc_port());
  const std::string faulty = Request("1", texts).SerializeAsString();
  deaf.Call("/encoderd.v1.Encoder/EmbedStream", faulty);
  ASSERT_TRUE(deaf.ReadHeaders());
  deaf.Call("/encoderd.v1.Encoder/EmbedStream", faulty);
  const std::string unread = "bytes of answers are unread";
  while (deaf.ReadHeaders() &&
         deaf.payload().find(unread) == std::string::npos) {
  }
  EXPECT_THAT(deaf.payload(), ::testing::HasSubstr(unread));
  EXPECT_THAT(deaf.payload(), ::testing::HasSubstr("grpc-retry-pushback-ms"));
}

TEST(StreamLifeTest, CancelsAtAnyMomentLeaveNothingBehind) {
  FakeModelOptions fake;
  fake.batch_time = absl::Microseconds(200);
  TestServer server(fake);
  for (int i = 0; i < 200; ++i) {
    Stream stream(&server);
    for (int k = 0; k < i % 7; ++k) {
      stream.Write(Request(absl::StrCat(k), {"a", "b", "c"}));
    }
    absl::SleepFor(absl::Microseconds(23 * (i % 40)));
    if (i % 3 == 0) stream.HalfClose();
    stream.Cancel();
    stream.Finish();
  }
  ASSERT_TRUE(Eventually([&] { return server.server().in_flight() == 0; }));
  ASSERT_TRUE(Eventually([&] { return server.server().streams() == 0; }));
  const std::string metrics = server.MetricsText();
  EXPECT_EQ(TestServer::Sample(metrics, "encoderd_queue_inputs"), 0);
  EXPECT_EQ(TestServer::Sample(metrics, "encoderd_queue_tokens"), 0);
  v1::EmbedResponse response;
  EXPECT_TRUE(server.Embed(TextRequest({"still here"}), &response).ok());
}

TEST(StreamLifeTest, WhatACancelledStreamHasInTheQueueIsNeverComputed) {
  TestServer server;
  server.model().device().CloseGate();
  Stream first(&server);
  ASSERT_TRUE(first.Write(Request("first", {"first"})));
  ASSERT_TRUE(server.model().device().WaitForBatchesAtGate(1));
  Stream gone(&server);
  ASSERT_TRUE(gone.Write(Request("gone", {"Y", "Y"})));
  ASSERT_TRUE(Eventually([&] { return Queued(server) == 2; }));
  gone.Cancel();
  EXPECT_EQ(gone.Finish().error_code(), grpc::StatusCode::CANCELLED);
  ASSERT_TRUE(Eventually([&] { return Queued(server) == 0; }));
  server.model().device().OpenGate();
  v1::EmbedResponse response;
  ASSERT_TRUE(first.Read(&response));
  EXPECT_FALSE(server.model().device().SawToken(FakeTokenizer::Id('Y')));
}

TEST(StreamLifeTest, DrainingAnswersWhatWasTakenAndEndsEveryStream) {
  TestServer server;
  server.model().device().CloseGate();
  Stream idle(&server);
  Stream busy(&server);
  ASSERT_TRUE(busy.Write(Request("taken", {"a"})));
  ASSERT_TRUE(server.model().device().WaitForBatchesAtGate(1));
  ASSERT_TRUE(Eventually([&] { return server.server().streams() == 2; }));
  std::thread drain([&] { EXPECT_TRUE(server.server().Drain()); });
  v1::EmbedResponse response;
  EXPECT_FALSE(idle.Read(&response));
  EXPECT_EQ(ReadError(idle.Finish()).reason, "DRAINING");
  server.model().device().OpenGate();
  ASSERT_TRUE(busy.Read(&response));
  EXPECT_EQ(Floats(response.embeddings(0)), server.Expected("a"));
  EXPECT_FALSE(busy.Read(&response));
  EXPECT_EQ(ReadError(busy.Finish()).reason, "DRAINING");
  drain.join();
}

TEST(StreamLifeTest, DrainingEndsAStreamWellThatHasSentEverything) {
  for (const bool before : {true, false}) {
    // Until the server has seen the half-close.
    EXPECT_TRUE(GivenEnoughTime([before](absl::Duration time) {
      TestServer server;
      server.model().device().CloseGate();
      Stream stream(&server);
      EXPECT_TRUE(stream.Write(Request("last", {"a"})));
      EXPECT_TRUE(server.model().device().WaitForBatchesAtGate(1));
      if (before) stream.HalfClose();
      std::thread drain([&] { EXPECT_TRUE(server.server().Drain()); });
      v1::EmbedResponse response;
      EXPECT_TRUE(Eventually([&] {
        return ReadError(server.Embed(TextRequest({""}), &response)).reason ==
               "DRAINING";
      }));
      if (!before) stream.HalfClose();
      absl::SleepFor(time / 10);
      server.model().device().OpenGate();
      EXPECT_TRUE(stream.Read(&response));
      EXPECT_EQ(Floats(response.embeddings(0)), server.Expected("a"));
      EXPECT_FALSE(stream.Read(&response));
      drain.join();
      return stream.Finish().ok();
    })) << before;
  }
}

TEST(StreamLifeTest, BeforeTheModelIsLoadedItEndsAtOnce) {
  TestServer server(TestServer::NotLoaded(), {});
  Stream stream(&server);
  v1::EmbedResponse response;
  EXPECT_FALSE(stream.Read(&response));
  const RpcError error = ReadError(stream.Finish());
  EXPECT_EQ(error.code, grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(error.reason, "LOADING");
}

TEST(StreamLifeTest, TheDeadlineTakesQueuedWorkAlong) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    TestServer server;
    server.model().device().CloseGate();
    Stream first(&server);
    EXPECT_TRUE(first.Write(Request("first", {"first"})));
    EXPECT_TRUE(server.model().device().WaitForBatchesAtGate(1));
    const absl::Time deadline = SteadyNow() + time;
    Stream late(&server, time);
    late.Write(Request("late", {"Z"}));
    bool queued = false;  // before its time was up
    EXPECT_TRUE(Eventually([&] {
      queued = Queued(server) == 1;
      return queued || SteadyNow() > deadline;
    }));
    EXPECT_EQ(late.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_TRUE(Eventually([&] { return Queued(server) == 0; }));
    server.model().device().OpenGate();
    v1::EmbedResponse response;
    EXPECT_TRUE(first.Read(&response));
    if (queued) {
      EXPECT_FALSE(server.model().device().SawToken(FakeTokenizer::Id('Z')));
    }
    return queued;
  }));
}

TEST(StreamLifeTest, AThousandIdleStreamsAreOpenAtOnce) {
  TestServer server;
  std::vector<std::unique_ptr<Stream>> streams;
  v1::EmbedResponse response;
  for (int i = 0; i < 1000; ++i) {
    streams.push_back(std::make_unique<Stream>(&server, absl::Seconds(120)));
    ASSERT_TRUE(streams.back()->Write(Request("first", {"a"})));
    ASSERT_TRUE(streams.back()->Read(&response));
  }
  EXPECT_EQ(server.server().streams(), 1000);
  EXPECT_TRUE(Eventually([&] { return server.server().in_flight() == 0; }));
  ASSERT_TRUE(streams[0]->Write(Request("again", {"b"})));
  ASSERT_TRUE(streams[0]->Read(&response));
  EXPECT_EQ(Floats(response.embeddings(0)), server.Expected("b"));
  for (auto& stream : streams) {
    stream->HalfClose();
    EXPECT_FALSE(stream->Read(&response));
    EXPECT_TRUE(stream->Finish().ok());
  }
}

}  // namespace
}  // namespace encoderd
