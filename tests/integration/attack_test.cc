// Callers who buy memory, or hold up others, with few bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "server/base/steady_time.h"
#include "server/rpc/acceptor.h"
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

constexpr char kInspect[] = "/encoderd.v1.Encoder/InspectPositions";

// A request whose answer holds a cosine matrix of all rows.
std::string AllRows() {
  v1::InspectPositionsRequest request;
  request.set_cosine(true);
  request.set_row_count(128);
  return request.SerializeAsString();
}

// A window of 0: what is answered lies in our memory.
TEST(AttackTest, AnswersThatNobodyReadsAreBounded) {
  FakeModelOptions fake;
  ServerConfig config = TestConfig();
  config.max_unread_answer_bytes = 1 << 20;
  TestServer server(fake, config);
  v1::InspectPositionsResponse whole;
  ASSERT_TRUE(server.CallRaw(kInspect, AllRows(), &whole).ok());
  const auto answer = static_cast<int64_t>(whole.ByteSizeLong());
  const auto calls =
      static_cast<int>(3 * config.max_unread_answer_bytes / answer);

  RawHttp2 deaf(server.server().grpc_port());
  for (int i = 0; i < calls; ++i) {
    deaf.HalfClose(deaf.Call(kInspect, AllRows()));
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
  EXPECT_TRUE(server.CallRaw(kInspect, AllRows(), &whole).ok());
}

TEST(AttackTest, CallsWhoseAnswersNobodyReadsAreResetAfterTenSeconds) {
  ServerConfig config = TestConfig();
  config.max_unread_answer_bytes = 1 << 17;
  TestServer server({}, config);
  const absl::Time begun = SteadyNow();
  RawHttp2 deaf(server.server().grpc_port());
  deaf.Call("/encoderd.v1.Encoder/EmbedStream",
            Request("1", {"x"}).SerializeAsString());
  EXPECT_TRUE(Eventually([&] { return Unread(server) > 0; }));
  const int64_t of_stream = Unread(server);
  deaf.HalfClose(deaf.Call(kInspect, AllRows()));
  EXPECT_TRUE(Eventually([&] { return Unread(server) > of_stream; }));

  // Whoever reads gets more than the limit leaves; it makes room.
  v1::InspectPositionsResponse whole;
  EXPECT_TRUE(Eventually([&] {
    absl::SleepFor(absl::Milliseconds(100));
    // Refused while its own answer before counts as unread.
    server.CallRaw(kInspect, AllRows(), &whole);
    return TestServer::Sample(server.MetricsText(),
                              "encoderd_unread_answers_cut_total") == 2;
  }));
  EXPECT_GE(SteadyNow() - begun, absl::Seconds(10));
  EXPECT_TRUE(deaf.ReadUntil(RawHttp2::kResetStream));  // EmbedStream's
  EXPECT_TRUE(deaf.ReadUntil(RawHttp2::kResetStream));
  EXPECT_TRUE(Eventually([&] { return Unread(server) == 0; }));
  EXPECT_TRUE(server.CallRaw(kInspect, AllRows(), &whole).ok());
}

// Some clients send their largest number of hours for "no deadline".
TEST(AttackTest, ADeadlineInThreeHundredYearsHasNotPassed) {
  TestServer server;
  RawHttp2 caller(server.server().grpc_port());
  caller.HalfClose(caller.Call("/encoderd.v1.Encoder/Embed",
                               TextRequest({"text"}).SerializeAsString(), 0,
                               {{"grpc-timeout", "2562047H"}}));
  const auto answered = [&server](absl::string_view code) {
    return TestServer::Sample(server.MetricsText(),
                              absl::StrCat("encoderd_requests_total{code=\"",
                                           code, "\",method=\"Embed\""));
  };
  ASSERT_TRUE(Eventually(
      [&] { return answered("OK") + answered("DEADLINE_EXCEEDED") == 1; }));
  EXPECT_EQ(answered("OK"), 1);
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
  EXPECT_EQ(error.retry_delay, absl::Milliseconds(500));
  EXPECT_EQ(more.Trailer("grpc-retry-pushback-ms"), "500");
  EXPECT_EQ(TestServer::Sample(
                server.MetricsText(),
                "encoderd_requests_total{code=\"RESOURCE_EXHAUSTED\",method="
                "\"EmbedStream\",model=\"\",outcome=\"refused\"}"),
            1);
  streams[0]->HalfClose();
  EXPECT_TRUE(streams[0]->Finish().ok());
  EXPECT_EQ(streams[0]->Trailer("grpc-retry-pushback-ms"), "");
  EXPECT_TRUE(Eventually([&] { return server.server().streams() == 2; }));
  Stream again(&server);
  v1::EmbedResponse response;
  ASSERT_TRUE(again.Write(Request("b", {"b"})));
  EXPECT_TRUE(again.Read(&response));
}

TEST(AttackTest, OneAddressCannotTakeEveryConnection) {
  ServerConfig config = TestConfig();
  config.max_connections = 8;
  config.max_connections_per_address = 3;
  TestServer server({}, config);
  v1::EmbedResponse response;
  ASSERT_TRUE(server.Embed(TextRequest({"first"}), &response).ok());
  std::vector<std::unique_ptr<RawHttp2>> idle;
  for (int i = 0; i < 2; ++i) {
    idle.push_back(std::make_unique<RawHttp2>(server.server().grpc_port()));
    ASSERT_TRUE(idle.back()->ReadUntil(RawHttp2::kSettings)) << i;
  }
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(RawHttp2::IsClosedAtOnce(server.server().grpc_port()));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, ::testing::HasSubstr("event=connection_refused "
                                        "address=127.0.0.1 limit=3 "
                                        "refused_so_far=1 message="));
  EXPECT_EQ(log.find("connection_refused"), log.rfind("connection_refused"));
  EXPECT_EQ(TestServer::Sample(server.MetricsText(),
                               "encoderd_connections_refused_total"),
            20);
  EXPECT_EQ(server.server().connections(), 3);
  EXPECT_TRUE(server.Embed(TextRequest({"still"}), &response).ok());
  idle.pop_back();
  EXPECT_TRUE(Eventually([&] { return server.server().connections() == 2; }));
  RawHttp2 next(server.server().grpc_port());
  EXPECT_TRUE(next.ReadUntil(RawHttp2::kSettings));
}

TEST(AttackTest, TheLastConnectionsAreForAddressesThatHaveNone) {
  ServerConfig config = TestConfig();
  config.max_connections = 2 * Acceptor::kReserveShare;
  config.max_connections_per_address = config.max_connections / 2;
  TestServer server({}, config);
  const int port = server.server().grpc_port();
  std::vector<std::unique_ptr<RawHttp2>> open;
  const auto opens = [&](const char* from) {
    open.push_back(std::make_unique<RawHttp2>(port, from));
    return open.back()->ReadUntil(RawHttp2::kSettings);
  };
  for (int i = 0; i < config.max_connections / 2 - 1; ++i) {
    ASSERT_TRUE(opens("127.0.0.1")) << i;
    ASSERT_TRUE(opens("127.0.0.2")) << i;
  }
  ::testing::internal::CaptureStderr();
  for (const char* from : {"127.0.0.1", "127.0.0.2"}) {
    EXPECT_TRUE(RawHttp2::IsClosedAtOnce(port, from));
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr(
                  "address=127.0.0.1 limit=128 refused_so_far=1 message="
                  "\"almost --max_connections are open"));
  EXPECT_TRUE(opens("127.0.0.3"));
  EXPECT_TRUE(RawHttp2::IsClosedAtOnce(port, "127.0.0.3"));
  EXPECT_TRUE(opens("127.0.0.4"));
  EXPECT_EQ(server.server().connections(), config.max_connections);
  EXPECT_EQ(TestServer::Sample(server.MetricsText(),
                               "encoderd_connections_refused_total"),
            3);
  // Beyond them a new address waits.
  RawHttp2 waiting(port, "127.0.0.5");
  open.pop_back();
  EXPECT_TRUE(waiting.ReadUntil(RawHttp2::kSettings));
}

// gRPC forgives three pings that come sooner than 5 s after the one before.
TEST(AttackTest, WhoPingsInAHurryIsCutOffAlone) {
  TestServer server;
  v1::EmbedResponse response;
  ASSERT_TRUE(server.Embed(TextRequest({"before"}), &response).ok());
  RawHttp2 flooder(server.server().grpc_port());
  uint8_t answer = RawHttp2::kPing;
  for (int i = 0; i < 1000 && answer == RawHttp2::kPing; ++i) {
    flooder.Ping();
    do {
      answer = flooder.ReadFrame();
    } while (answer != RawHttp2::kPing && answer != RawHttp2::kGoAway &&
             answer != RawHttp2::kEnded);
  }
  EXPECT_EQ(answer, RawHttp2::kGoAway);
  EXPECT_THAT(flooder.payload(), ::testing::HasSubstr("too_many_pings"));
  EXPECT_TRUE(flooder.ReadUntil(RawHttp2::kEnded));  // it hung up
  // The other connection is the one that was there before.
  EXPECT_TRUE(Eventually([&] { return server.server().connections() == 1; }));
  EXPECT_TRUE(server.Embed(TextRequest({"after"}), &response).ok());
  EXPECT_EQ(server.server().connections(), 1);
}

// Calls over a channel as callers have it, until its connection has gone three
// times after an answer: what a GOAWAY does not cover gRPC sends again, so that
// no call fails. wait: how long after an answer it may take to go.
void ExpectNewConnections(TestServer& server, absl::Duration wait) {
  const auto channel = grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", server.server().grpc_port()),
      grpc::InsecureChannelCredentials());
  const auto stub = v1::Encoder::NewStub(channel);
  int gone = 0;
  EXPECT_TRUE(Eventually([&] {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    v1::EmbedResponse response;
    const grpc::Status status =
        stub->Embed(&context, TextRequest({"x"}), &response);
    EXPECT_TRUE(status.ok()) << gone << " " << status.error_message();
    channel->WaitForStateChange(GRPC_CHANNEL_READY,
                                absl::ToChronoTime(absl::Now() + wait));
    if (channel->GetState(false) == GRPC_CHANNEL_IDLE) ++gone;
    return gone == 3;
  })) << gone;
}

TEST(AttackTest, AnIdleConnectionIsAskedToClose) {
  ServerConfig config = TestConfig();
  config.max_connection_idle = absl::Milliseconds(50);
  TestServer server({}, config);
  RawHttp2 idle(server.server().grpc_port());
  EXPECT_TRUE(idle.ReadUntil(RawHttp2::kGoAway));
  // A call that came just as the connection is closed would be lost with it.
  ExpectNewConnections(server, kPatience);
}

TEST(AttackTest, AnOldConnectionIsAskedToCloseAndLosesNoCall) {
  ServerConfig config = TestConfig();
  config.max_connection_age = absl::Milliseconds(100);
  TestServer server({}, config);
  RawHttp2 old(server.server().grpc_port());
  Stream stream(&server);
  v1::EmbedResponse response;
  ASSERT_TRUE(stream.Write(Request("a", {"a"})));
  ASSERT_TRUE(stream.Read(&response));
  EXPECT_TRUE(old.ReadUntil(RawHttp2::kGoAway));
  ExpectNewConnections(server, absl::ZeroDuration());
  // Far past its age, the stream goes on.
  ASSERT_TRUE(stream.Write(Request("b", {"b"})));
  EXPECT_TRUE(stream.Read(&response));
  EXPECT_EQ(response.request_id(), "b");
}

// gRPC's own; the cost of a name grows with the square of its dots.
TEST(AttackTest, ReflectionIsAskedForShortNamesOnly) {
  TestServer server;
  const auto ask = [&server](const std::string& symbol) {
    std::string request;
    {
      google::protobuf::io::StringOutputStream stream(&request);
      google::protobuf::io::CodedOutputStream out(&stream);
      out.WriteTag(4 << 3 | 2);  // the symbol whose file is wanted
      out.WriteVarint32(static_cast<uint32_t>(symbol.size()));
      out.WriteString(symbol);
    }
    google::protobuf::Empty answer;
    EXPECT_TRUE(server
                    .CallRaw("/grpc.reflection.v1alpha.ServerReflection/"
                             "ServerReflectionInfo",
                             request, &answer)
                    .ok());
    std::set<int> fields;
    const auto& unknown =
        google::protobuf::Empty::GetReflection()->GetUnknownFields(answer);
    for (int i = 0; i < unknown.field_count(); ++i) {
      fields.insert(unknown.field(i).number());
    }
    return fields;
  };
  constexpr int kDescriptors = 4, kError = 7;
  EXPECT_THAT(ask("encoderd.v1.Encoder"), ::testing::Contains(kDescriptors));
  EXPECT_THAT(ask("encoderd.v1.None"), ::testing::Contains(kError));
  EXPECT_THAT(ask(std::string(1 << 20, '.')), ::testing::Contains(kError));
}

// In gRPC 1.51 each answer had the files of all before it on the same call.
TEST(AttackTest, AnswersOfReflectionDoNotGrow) {
  TestServer server;
  grpc::CompletionQueue queue;
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok) && ok);
  };
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  const auto call = grpc::GenericStub(server.NewChannel())
                        .PrepareCall(&context,
                                     "/grpc.reflection.v1alpha.ServerReflection"
                                     "/ServerReflectionInfo",
                                     &queue);
  call->StartCall(nullptr);
  wait();
  const grpc::Slice symbol(
      "\x22\x13"
      "encoderd.v1.Encoder");
  std::vector<size_t> sizes;
  for (int i = 0; i < 4; ++i) {
    call->Write(grpc::ByteBuffer(&symbol, 1), nullptr);
    wait();
    grpc::ByteBuffer answer;
    call->Read(&answer, nullptr);
    wait();
    sizes.push_back(answer.Length());
  }
  EXPECT_GT(sizes[0], 1000u);
  EXPECT_THAT(sizes, ::testing::Each(sizes[0]));
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
}

}  // namespace
}  // namespace encoderd
