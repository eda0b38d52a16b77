// What a server that traces sends to a collector of this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"
#include "tests/integration/stream_client.h"
#include "tests/support/certificates.h"
#include "tests/support/held_port.h"
#include "tests/support/patience.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

namespace otlp = opentelemetry::proto;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kTraceparent[] =
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0";  // and a flag
constexpr char kFailed[] = "encoderd_spans_total{outcome=\"failed\"}";

class Collector final
    : public otlp::collector::trace::v1::TraceService::Service {
 public:
  explicit Collector(const std::shared_ptr<grpc::ServerCredentials>&
                         credentials = grpc::InsecureServerCredentials()) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Collector() override { server_->Shutdown(); }

  std::string endpoint() const { return absl::StrCat("127.0.0.1:", port_); }

  // Waits until `count` spans came.
  std::vector<otlp::trace::v1::Span> WaitForSpans(size_t count) {
    Eventually([this, count] {
      absl::MutexLock lock(&mu_);
      return spans_.size() >= count;
    });
    absl::MutexLock lock(&mu_);
    return spans_;
  }

 private:
  grpc::Status Export(
      grpc::ServerContext*,
      const otlp::collector::trace::v1::ExportTraceServiceRequest* request,
      otlp::collector::trace::v1::ExportTraceServiceResponse*) override {
    absl::MutexLock lock(&mu_);
    for (const auto& resource : request->resource_spans()) {
      for (const auto& scope : resource.scope_spans()) {
        for (const auto& span : scope.spans()) spans_.push_back(span);
      }
    }
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex mu_;
  std::vector<otlp::trace::v1::Span> spans_ ABSL_GUARDED_BY(mu_);
};

// TLS with the certificate `name` of tests/support/make_certificates.sh.
std::shared_ptr<grpc::ServerCredentials> ServerCertificate(
    const std::string& name) {
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back(
      {CertificateText(name + ".key"), CertificateText(name + ".pem")});
  return grpc::SslServerCredentials(options);
}

ServerConfig Traced(const std::string& endpoint) {
  ServerConfig config = TestConfig();
  config.otlp_endpoint = endpoint;
  return config;
}

std::string Text(const otlp::trace::v1::Span& span, const std::string& key) {
  for (const auto& attribute : span.attributes()) {
    if (attribute.key() == key) return attribute.value().string_value();
  }
  return "";
}

std::vector<std::string> EventsOf(const otlp::trace::v1::Span& span) {
  std::vector<std::string> names;
  for (const auto& event : span.events()) names.push_back(event.name());
  return names;
}

// Whether the stages follow each other within the span.
bool InOrder(const otlp::trace::v1::Span& span) {
  uint64_t last = span.start_time_unix_nano();
  for (const auto& event : span.events()) {
    if (event.time_unix_nano() < last) return false;
    last = event.time_unix_nano();
  }
  return last <= span.end_time_unix_nano();
}

grpc::Status EmbedIn(TestServer* server, const std::string& traceparent,
                     const std::string& text = "hello") {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  if (!traceparent.empty()) context.AddMetadata("traceparent", traceparent);
  v1::EmbedResponse response;
  return server->stub().Embed(&context, TextRequest({text}), &response);
}

TEST(TraceTest, ACallIsASpanOfItsCallersTraceWithItsStages) {
  Collector collector;
  TestServer server({}, Traced(collector.endpoint()));
  ASSERT_TRUE(EmbedIn(&server, absl::StrCat(kTraceparent, "1")).ok());
  const auto spans = collector.WaitForSpans(1);
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_EQ(spans[0].name(), "encoderd.v1.Encoder/Embed");
  EXPECT_EQ(spans[0].trace_id().substr(0, 2), "\x0a\xf7");
  EXPECT_EQ(spans[0].parent_span_id().substr(0, 2), "\xb7\xad");
  EXPECT_THAT(EventsOf(spans[0]),
              ElementsAre("tokenized", "compute_started", "computed"));
  EXPECT_TRUE(InOrder(spans[0]));
  EXPECT_FALSE(Text(spans[0], "encoderd.model").empty());
}

TEST(TraceTest, ACallerThatDoesNotRecordCostsNoSpan) {
  Collector collector;
  TestServer server({}, Traced(collector.endpoint()));
  ASSERT_TRUE(EmbedIn(&server, absl::StrCat(kTraceparent, "0")).ok());
  // Spans arrive in the order of their calls: these would come later.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(EmbedIn(&server, "").ok());
  const auto spans = collector.WaitForSpans(2);
  ASSERT_THAT(spans, SizeIs(2));
  for (const auto& span : spans) EXPECT_EQ(span.parent_span_id(), "");
}

// The system's authorities, in a process that has another idea of them. gRPC
// reads them once: no other test of this program connects with TLS.
TEST(TraceTest, AnEndpointWithHttpsIsEncryptedAndItsCertificateChecked) {
  signal(SIGPIPE, SIG_IGN);  // as RunServer does
  setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", CertificatePath("ca.pem").c_str(),
         /*replace=*/1);
  Collector expired(ServerCertificate("expired"));
  Collector trusted(ServerCertificate("server"));
  TestServer refuses({}, Traced("https://" + expired.endpoint()));
  TestServer exports({}, Traced("https://" + trusted.endpoint()));
  ASSERT_TRUE(EmbedIn(&refuses, "").ok());
  ASSERT_TRUE(EmbedIn(&exports, "").ok());
  EXPECT_THAT(trusted.WaitForSpans(1), SizeIs(1));
  EXPECT_TRUE(Eventually([&refuses] {
    return TestServer::Sample(refuses.MetricsText(), kFailed) == 1;
  }));
  EXPECT_THAT(expired.WaitForSpans(0), IsEmpty());
}

TEST(TraceTest, ARefusedCallIsASpanWithItsReasonAndNoStages) {
  Collector collector;
  TestServer server({}, Traced(collector.endpoint()));
  ASSERT_FALSE(EmbedIn(&server, "", "").ok());
  const auto spans = collector.WaitForSpans(1);
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_EQ(Text(spans[0], "error.type"), "EMPTY_INPUT");
  EXPECT_THAT(EventsOf(spans[0]), IsEmpty());
}

TEST(TraceTest, EveryRequestOfAStreamIsASpanOfTheStreamsTrace) {
  Collector collector;
  TestServer server({}, Traced(collector.endpoint()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  context.AddMetadata("traceparent", absl::StrCat(kTraceparent, "1"));
  const auto stream = server.stub().EmbedStream(&context);
  for (const char* id : {"a", "b"}) {
    ASSERT_TRUE(stream->Write(Request(id, {"hello"})));
  }
  ASSERT_TRUE(stream->Write(Request("c", {""})));
  stream->WritesDone();
  v1::EmbedResponse response;
  while (stream->Read(&response)) {
  }
  ASSERT_TRUE(stream->Finish().ok());
  const auto spans = collector.WaitForSpans(3);
  ASSERT_THAT(spans, SizeIs(3));
  std::map<std::string, int> reasons;
  for (const auto& span : spans) {
    EXPECT_EQ(span.name(), "encoderd.v1.Encoder/EmbedStream");
    EXPECT_EQ(span.trace_id(), spans[0].trace_id());
    ++reasons[Text(span, "error.type")];
    EXPECT_TRUE(InOrder(span));
  }
  EXPECT_EQ(reasons["EMPTY_INPUT"], 1);
  EXPECT_EQ(reasons[""], 2);
}

TEST(TraceTest, WithoutACollectorCallsAreAnsweredAndSpansCounted) {
  const HeldPort nobody;
  TestServer server({}, Traced(absl::StrCat("127.0.0.1:", nobody.port())));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(EmbedIn(&server, "").ok());
  EXPECT_TRUE(Eventually([&server] {
    return TestServer::Sample(server.MetricsText(), kFailed) >= 20;
  }));
  EXPECT_EQ(TestServer::Sample(server.MetricsText(), kFailed), 20);
}

TEST(TraceTest, TwoTraceparentsAreNone) {
  Collector collector;
  TestServer server({}, Traced(collector.endpoint()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  for (int i = 0; i < 2; ++i) {
    context.AddMetadata("traceparent", absl::StrCat(kTraceparent, "1"));
  }
  v1::EmbedResponse response;
  ASSERT_TRUE(
      server.stub().Embed(&context, TextRequest({"hello"}), &response).ok());
  const auto spans = collector.WaitForSpans(1);
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_THAT(spans[0].parent_span_id(), IsEmpty());
}

TEST(TraceTest, AServerThatDoesNotTraceTakesATraceparentInSilence) {
  TestServer server;
  ASSERT_TRUE(EmbedIn(&server, absl::StrCat(kTraceparent, "1")).ok());
}

}  // namespace
}  // namespace encoderd
