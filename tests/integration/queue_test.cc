// Overload, deadlines, cancellation and faults, with the device's gate in the
// test's hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/pipeline/queue_pace.h"
#include "tests/integration/stream_client.h"
#include "tests/support/patience.h"
#include "tests/support/raw_http2.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

double CancelledInputs(const TestServer& server) {
  return TestServer::Sample(server.MetricsText(),
                            "encoderd_cancelled_total{stage=\"queue\"}");
}

// An Embed call in flight on its own thread.
class Call {
 public:
  Call(TestServer* server, const v1::EmbedRequest& request,
       absl::Duration timeout = kPatience) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    thread_ = std::thread([this, server, request] {
      status_ = server->stub().Embed(&context_, request, &response_);
      ended_ = true;
    });
  }
  ~Call() {
    if (thread_.joinable()) thread_.join();
  }
  void Cancel() { context_.TryCancel(); }
  bool ended() const { return ended_; }
  const grpc::Status& Wait() {
    if (thread_.joinable()) thread_.join();
    return status_;
  }
  // Once waited for.
  std::string Trailer(const std::string& key) const {
    const auto& trailers = context_.GetServerTrailingMetadata();
    const auto at = trailers.find(key);
    return at == trailers.end()
               ? ""
               : std::string(at->second.data(), at->second.size());
  }

 private:
  grpc::ClientContext context_;
  v1::EmbedResponse response_;
  grpc::Status status_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// A call for "Z" with so much time, of which it spends the rest in the queue.
// False: it had spent all before it was seen there.
bool ExpireInTheQueue(TestServer* server, absl::Duration time) {
  server->model().device().CloseGate();
  Call first(server, TextRequest({"first"}));
  EXPECT_TRUE(server->model().device().WaitForBatchesAtGate(1));
  Call late(server, TextRequest({"Z"}), time);
  bool queued = false;
  EXPECT_TRUE(Eventually([&] {
    queued = Queued(*server) == 1;
    return queued || late.ended();
  }));
  EXPECT_EQ(late.Wait().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Eventually([&] { return Queued(*server) == 0; }));
  server->model().device().OpenGate();
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_TRUE(Eventually([&] { return server->server().in_flight() == 0; }));
  return queued;
}

TEST(QueueTest, AFullQueueSaysWhenToComeBack) {
  ServerConfig config = TestConfig();
  config.max_queue_tokens = 512;
  TestServer server({}, config);
  server.model().device().CloseGate();
  Call first(&server, TextRequest({Letters(256)}));
  ASSERT_TRUE(server.model().device().WaitForBatchesAtGate(1));
  Call second(&server, TextRequest({Letters(256)}));
  ASSERT_TRUE(Eventually([&] { return Queued(server) == 1; }));

  Call third(&server, TextRequest({Letters(256)}));
  const RpcError error = ReadError(third.Wait());
  EXPECT_EQ(error.code, grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(error.reason, "QUEUE_FULL");
  ASSERT_TRUE(error.retry_delay.has_value());
  // Nothing has been computed: the shortest time in which a queue drains.
  EXPECT_GE(*error.retry_delay, QueuePace::kShortestDrain / 2);
  EXPECT_LE(*error.retry_delay, QueuePace::kShortestDrain);
  EXPECT_EQ(third.Trailer("grpc-retry-pushback-ms"),
            absl::StrCat(absl::ToInt64Milliseconds(*error.retry_delay)));

  server.model().device().OpenGate();
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_TRUE(second.Wait().ok());
}

TEST(QueueTest, ARequestLargerThanTheQueueIsTheCallersMistake) {
  ServerConfig config = TestConfig();
  config.max_queue_tokens = 512;
  TestServer server({}, config);
  v1::EmbedResponse response;
  v1::EmbedRequest request;
  for (int i = 0; i < 3; ++i) {
    auto* ids = request.add_inputs()->mutable_tokens()->mutable_ids();
    ids->Resize(256, 1);
  }
  const RpcError error = ReadError(server.Embed(request, &response));
  EXPECT_EQ(error.code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason, "REQUEST_TOO_LARGE");
  EXPECT_FALSE(error.retry_delay.has_value());
}

TEST(QueueTest, WhatExpiresInTheQueueIsNeverComputed) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    TestServer server;
    if (!ExpireInTheQueue(&server, time)) return false;
    EXPECT_FALSE(server.model().device().SawToken(FakeTokenizer::Id('Z')));
    EXPECT_EQ(CancelledInputs(server), 1);
    return true;
  }));
}

TEST(QueueTest, ADeadlineThatThePipelineSeesFirstHasAReason) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    TestServer server;
    if (!ExpireInTheQueue(&server, time)) return false;
    // gRPC cancels the call at its deadline, or the pipeline expires it before.
    const std::string metrics = server.MetricsText();
    EXPECT_EQ(
        TestServer::Sample(
            metrics, "encoderd_rejections_total{reason=\"EXPIRED_IN_QUEUE\"}") +
            TestServer::Sample(metrics,
                               "encoderd_rejections_total{reason="
                               "\"CANCELLED_IN_QUEUE\"}"),
        1);
    return true;
  }));
}

TEST(QueueTest, WhatWaitsForAsLongAsTheServerAllowsIsToldSo) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    ServerConfig config = TestConfig();
    config.max_queue_time = time;
    TestServer server({}, config);
    server.model().device().CloseGate();
    Call first(&server, TextRequest({"first"}));
    bool computed = false;
    EXPECT_TRUE(Eventually([&] {
      computed = server.model().device().batches_at_gate() == 1;
      return computed || first.ended();
    }));
    if (!computed) {
      server.model().device().OpenGate();
      return false;
    }
    Call late(&server, TextRequest({"Z"}));
    EXPECT_TRUE(Eventually([&] { return Queued(server) == 1; }));
    absl::SleepFor(time + absl::Milliseconds(10));
    server.model().device().OpenGate();
    EXPECT_TRUE(first.Wait().ok());
    RpcError error = ReadError(late.Wait());
    EXPECT_EQ(error.code, grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_EQ(error.reason, "EXPIRED_IN_QUEUE");
    EXPECT_EQ(error.metadata["max_queue_ms"],
              absl::StrCat(absl::ToInt64Milliseconds(time)));
    EXPECT_TRUE(Eventually([&] { return server.server().in_flight() == 0; }));
    EXPECT_EQ(TestServer::Sample(
                  server.MetricsText(),
                  "encoderd_rejections_total{reason=\"EXPIRED_IN_QUEUE\"}"),
              1);
    EXPECT_FALSE(server.model().device().SawToken(FakeTokenizer::Id('Z')));
    return true;
  }));
}

TEST(QueueTest, WhatIsCancelledInTheQueueIsNeverComputed) {
  TestServer server;
  server.model().device().CloseGate();
  Call first(&server, TextRequest({"first"}));
  ASSERT_TRUE(server.model().device().WaitForBatchesAtGate(1));
  Call gone(&server, TextRequest({"Y", "Y"}));
  ASSERT_TRUE(Eventually([&] { return Queued(server) == 2; }));
  gone.Cancel();
  EXPECT_EQ(gone.Wait().error_code(), grpc::StatusCode::CANCELLED);
  ASSERT_TRUE(Eventually([&] { return Queued(server) == 0; }));
  server.model().device().OpenGate();
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_FALSE(server.model().device().SawToken(FakeTokenizer::Id('Y')));
  EXPECT_TRUE(Eventually([&] { return CancelledInputs(server) == 2; }));
}

TEST(QueueTest, CancelsAtAnyMomentLeaveNothingBehind) {
  FakeModelOptions fake;
  fake.batch_time = absl::Microseconds(200);
  TestServer server(fake);
  for (int i = 0; i < Rounds(300); ++i) {
    Call call(&server, TextRequest({"a", "b", "c"}));
    absl::SleepFor(absl::Microseconds(17 * (i % 40)));
    call.Cancel();
    call.Wait();
  }
  ASSERT_TRUE(Eventually([&] { return server.server().in_flight() == 0; }));
  const std::string metrics = server.MetricsText();
  EXPECT_EQ(TestServer::Sample(metrics, "encoderd_queue_inputs"), 0);
  EXPECT_EQ(TestServer::Sample(metrics, "encoderd_queue_tokens"), 0);
  v1::EmbedResponse response;
  EXPECT_TRUE(server.Embed(TextRequest({"still here"}), &response).ok());
}

TEST(FaultTest, APassingFaultFailsItsBatchAndTheNextSucceeds) {
  TestServer server;
  server.model().device().FailNext(1, absl::InternalError("/secret/path"));
  v1::EmbedResponse response;
  ::testing::internal::CaptureStderr();
  const RpcError error = ReadError(server.Embed(TextRequest({"x"}), &response));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(error.code, grpc::StatusCode::INTERNAL);
  EXPECT_EQ(error.reason, "DEVICE_FAULT");
  const std::string id = error.metadata.at("error_id");
  EXPECT_FALSE(id.empty());
  EXPECT_THAT(error.message, ::testing::Not(HasSubstr("secret")));
  // Whoever searches the log for the id finds the device's own message.
  EXPECT_THAT(
      log, ContainsRegex(absl::StrCat(
               "level=error event=device_fault [^\n]*/secret/path[^\n]*", id)));
  EXPECT_THAT(log, HasSubstr(absl::StrCat("event=call_failed error_id=", id,
                                          " reason=DEVICE_FAULT")));
  EXPECT_TRUE(server.Embed(TextRequest({"x"}), &response).ok());
  EXPECT_TRUE(server.server().serving());
  EXPECT_FALSE(server.device_lost());
}

TEST(FaultTest, AThrowingTokenizerIsInternalWithAnErrorId) {
  TestServer server;
  v1::EmbedResponse response;
  const RpcError error =
      ReadError(server.Embed(TextRequest({"throw"}), &response));
  EXPECT_EQ(error.code, grpc::StatusCode::INTERNAL);
  EXPECT_FALSE(error.metadata.at("error_id").empty());
  EXPECT_TRUE(server.Embed(TextRequest({"x"}), &response).ok());
}

// Asking for the special tokens of a text throws before anything is admitted,
// asking for those of a pair while it is.
TEST(FaultTest, WhatThrowsInAHandlerIsInternalWithAnErrorId) {
  TestServer server;
  FakeTokenizer& tokenizer = server.model().fake_tokenizer();
  for (const bool pair : {false, true}) {
    v1::EmbedRequest request;
    v1::Input* const input = request.add_inputs();
    if (pair) {
      input->mutable_pair()->set_first("a");
      input->mutable_pair()->set_second("b");
    } else {
      input->set_text("a");
    }
    request.set_request_id("a");
    Stream stream(&server);
    v1::EmbedResponse response;
    for (const bool throws : {true, false}) {
      tokenizer.ThrowForSpecialTokens(pair, throws);
      const grpc::Status status = server.Embed(request, &response);
      v1::EmbedResponse streamed;
      ASSERT_TRUE(stream.Write(request));
      ASSERT_TRUE(stream.Read(&streamed));
      EXPECT_EQ(status.ok(), !throws);
      EXPECT_EQ(streamed.has_error(), throws);
      if (!throws) continue;
      for (const RpcError& error :
           {ReadError(status), ReadError(streamed.error())}) {
        EXPECT_EQ(error.code, grpc::StatusCode::INTERNAL);
        EXPECT_EQ(error.reason, "INTERNAL_FAULT");
        EXPECT_FALSE(error.metadata.at("error_id").empty());
      }
    }
    stream.HalfClose();
    EXPECT_FALSE(stream.Read(&response));
    EXPECT_TRUE(stream.Finish().ok());
  }
}

TEST(CancelTest, WhoResetsACallBeforeItsMessageIsCompleteIsNotRefused) {
  TestServer server;
  const auto requests = [&](const std::string& code) {
    return TestServer::Sample(
        server.MetricsText(),
        "encoderd_requests_total{code=\"" + code + "\",method=\"Embed\"}");
  };
  const auto malformed = [&] {
    return TestServer::Sample(
        server.MetricsText(),
        "encoderd_rejections_total{reason=\"MALFORMED_MESSAGE\"}");
  };
  RawHttp2 caller(server.server().grpc_port());
  const std::string embed = "/encoderd.v1.Encoder/Embed";
  caller.Reset(caller.Call(embed, "a part", 100));
  EXPECT_TRUE(Eventually([&] { return requests("CANCELLED") == 1; }));
  EXPECT_EQ(requests("INVALID_ARGUMENT"), 0);
  EXPECT_EQ(malformed(), 0);
  // One who says that there is no more is refused.
  caller.HalfClose(caller.Call(embed, "a part", 100));
  EXPECT_TRUE(Eventually([&] { return requests("INVALID_ARGUMENT") == 1; }));
  EXPECT_TRUE(Eventually([&] { return malformed() == 1; }));
  EXPECT_EQ(requests("CANCELLED"), 1);
}

TEST(FaultTest, ALostDeviceEndsServingAtOnce) {
  TestServer server;
  server.model().device().CloseGate();
  Call computing(&server, TextRequest({"computing"}));
  ASSERT_TRUE(server.model().device().WaitForBatchesAtGate(1));
  Call queued(&server, TextRequest({"queued"}));
  ASSERT_TRUE(Eventually([&] { return Queued(server) == 1; }));
  server.model().device().Lose();
  server.model().device().OpenGate();
  EXPECT_EQ(ReadError(computing.Wait()).reason, "DEVICE_FAULT");
  const RpcError error = ReadError(queued.Wait());
  EXPECT_EQ(error.code, grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(error.reason, "DEVICE_FAULT");
  EXPECT_FALSE(error.metadata.at("error_id").empty());
  EXPECT_TRUE(error.retry_delay.has_value());
  EXPECT_TRUE(Eventually([&] { return server.device_lost(); }));
  EXPECT_FALSE(server.server().serving());
  v1::EmbedResponse response;
  const RpcError later =
      ReadError(server.Embed(TextRequest({"later"}), &response));
  EXPECT_EQ(later.code, grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(later.retry_delay.has_value());
}

}  // namespace
}  // namespace encoderd
