#include "server/trace/otlp.h"

#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"
#include "tests/support/held_port.h"
#include "tests/support/loopback.h"
#include "tests/support/patience.h"

namespace encoderd {
namespace {

namespace otlp = opentelemetry::proto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

absl::Time At(int64_t ns) { return absl::FromUnixNanos(ns); }

CallSpan Embedded() {
  CallSpan span;
  span.context.trace_id[0] = 1;
  span.context.parent[7] = 2;
  span.id[0] = 3;
  span.method = "Embed";
  span.model = "mini";
  span.arrived = At(1000);
  span.answered = At(9000);
  span.work.tokens = 12;
  span.work.stages = {At(2000), At(5000), At(8000)};
  return span;
}

otlp::trace::v1::Span Sent(const CallSpan& span) {
  const auto request = ToOtlp({&span, 1}, "here");
  return request.resource_spans(0).scope_spans(0).spans(0);
}

// Texts as they are, numbers as digits.
std::map<std::string, std::string> Values(
    const google::protobuf::RepeatedPtrField<otlp::common::v1::KeyValue>& all) {
  std::map<std::string, std::string> values;
  for (const auto& one : all) {
    values[one.key()] = one.value().has_string_value()
                            ? one.value().string_value()
                            : std::to_string(one.value().int_value());
  }
  return values;
}

TEST(OtlpTest, ASpanSaysWhoseItIsAndWhenItWas) {
  const otlp::trace::v1::Span span = Sent(Embedded());
  EXPECT_EQ(span.trace_id(), std::string("\1") + std::string(15, '\0'));
  EXPECT_EQ(span.parent_span_id(), std::string(7, '\0') + "\2");
  EXPECT_EQ(span.span_id(), std::string("\3") + std::string(7, '\0'));
  EXPECT_EQ(span.name(), "encoderd.v1.Encoder/Embed");
  EXPECT_EQ(span.kind(), otlp::trace::v1::Span::SPAN_KIND_SERVER);
  EXPECT_EQ(span.start_time_unix_nano(), 1000);
  EXPECT_EQ(span.end_time_unix_nano(), 9000);
}

TEST(OtlpTest, AttributesAreThoseOfTheConventionsAndOurs) {
  EXPECT_THAT(Values(Sent(Embedded()).attributes()),
              UnorderedElementsAre(Pair("rpc.system", "grpc"),
                                   Pair("rpc.service", "encoderd.v1.Encoder"),
                                   Pair("rpc.method", "Embed"),
                                   Pair("rpc.grpc.status_code", "0"),
                                   Pair("encoderd.model", "mini"),
                                   Pair("encoderd.tokens", "12")));
}

TEST(OtlpTest, EventsAreTheStages) {
  const otlp::trace::v1::Span span = Sent(Embedded());
  std::vector<std::pair<std::string, int64_t>> events;
  for (const auto& event : span.events()) {
    events.emplace_back(event.name(), event.time_unix_nano());
  }
  EXPECT_THAT(events, ElementsAre(Pair("tokenized", 2000),
                                  Pair("compute_started", 5000),
                                  Pair("computed", 8000)));
}

TEST(OtlpTest, ACallThatWasNotComputedHasNoEvents) {
  CallSpan span = Embedded();
  span.work = {};
  EXPECT_TRUE(Sent(span).events().empty());
  EXPECT_EQ(Values(Sent(span).attributes()).count("encoderd.tokens"), 0);
}

TEST(OtlpTest, ARootHasNoParent) {
  CallSpan span = Embedded();
  span.context.parent = {};
  EXPECT_EQ(Sent(span).parent_span_id(), "");
}

// In the order and the words of server/docs/tracing.md.
TEST(OtlpTest, TheStatusIsAnErrorForTheCodesOfTheServersFaults) {
  CallSpan span = Embedded();
  std::vector<std::string> errors;
  for (int code = 0; code <= 16; ++code) {
    span.code = static_cast<absl::StatusCode>(code);
    const otlp::trace::v1::Span sent = Sent(span);
    EXPECT_EQ(Values(sent.attributes())["rpc.grpc.status_code"],
              std::to_string(code));
    if (sent.status().code() == otlp::trace::v1::Status::STATUS_CODE_ERROR) {
      errors.push_back(absl::StatusCodeToString(span.code));
    } else {
      EXPECT_EQ(sent.status().code(),
                otlp::trace::v1::Status::STATUS_CODE_UNSET);
    }
  }
  EXPECT_THAT(errors, ElementsAre("UNKNOWN", "DEADLINE_EXCEEDED", "INTERNAL",
                                  "UNAVAILABLE", "DATA_LOSS"));
}

TEST(OtlpTest, TheServersErrorsAreErrorsAndTheCallersAreNot) {
  CallSpan span = Embedded();
  span.code = absl::StatusCode::kInvalidArgument;
  span.reason = "INPUT_TOO_LONG";
  EXPECT_EQ(Sent(span).status().code(),
            otlp::trace::v1::Status::STATUS_CODE_UNSET);
  EXPECT_EQ(Values(Sent(span).attributes())["error.type"], "INPUT_TOO_LONG");
  span.code = absl::StatusCode::kInternal;
  span.reason = "DEVICE_FAULT";
  EXPECT_EQ(Sent(span).status().code(),
            otlp::trace::v1::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(Sent(span).status().message(), "DEVICE_FAULT");
}

TEST(OtlpTest, TheResourceNamesServiceVersionAndInstance) {
  const CallSpan span = Embedded();
  const auto request = ToOtlp({&span, 1}, "here");
  const auto values = Values(request.resource_spans(0).resource().attributes());
  EXPECT_EQ(values.at("service.name"), "encoderd");
  EXPECT_EQ(values.at("service.instance.id"), "here");
  EXPECT_FALSE(values.at("service.version").empty());
}

TEST(OtlpTest, ACollectorThatIsAwayIsNamed) {
  const CallSpan span = Embedded();
  const HeldPort nobody;
  const std::string target = absl::StrCat("127.0.0.1:", nobody.port());
  const auto exporter = NewOtlpExporter(target, /*tls=*/false);
  const ExportResult result = exporter->Export({&span, 1}, kPatience);
  EXPECT_EQ(result.failed, 1);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(result.status.message()),
              HasSubstr("no export to " + target));
}

// Answers each request with OK, and rejects some of its spans.
class PickyCollector final
    : public otlp::collector::trace::v1::TraceService::Service {
 public:
  explicit PickyCollector(int64_t rejected) : rejected_(rejected) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~PickyCollector() override { server_->Shutdown(); }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  grpc::Status Export(
      grpc::ServerContext*,
      const otlp::collector::trace::v1::ExportTraceServiceRequest*,
      otlp::collector::trace::v1::ExportTraceServiceResponse* response)
      override {
    response->mutable_partial_success()->set_rejected_spans(rejected_);
    response->mutable_partial_success()->set_error_message("too old");
    return grpc::Status::OK;
  }

  const int64_t rejected_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(OtlpTest, OnlyTheSpansThatACollectorRejectsHaveFailed) {
  const std::vector<CallSpan> spans(5, Embedded());
  const PickyCollector collector(2);
  const ExportResult result =
      NewOtlpExporter(collector.target(), false)->Export(spans, kPatience);
  EXPECT_EQ(result.failed, 2);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(result.status.message(),
            collector.target() + " rejected 2 of 5 spans: too old");
}

TEST(OtlpTest, ACountOfRejectedSpansIsBelievedWithinReason) {
  const std::vector<CallSpan> spans(5, Embedded());
  for (const auto& [said, failed] :
       {std::pair(0, 0), std::pair(-3, 0), std::pair(5, 5), std::pair(9, 5)}) {
    const PickyCollector collector(said);
    const ExportResult result =
        NewOtlpExporter(collector.target(), false)->Export(spans, kPatience);
    EXPECT_EQ(result.failed, failed) << said;
    EXPECT_EQ(result.status.ok(), failed == 0) << result.status;
  }
}

// Accepts connections, as the system does for a socket that listens, and never
// answers: by itself gRPC gives up after 20 s, with another code.
class SilentCollector {
 public:
  SilentCollector()
      : fd_(NewTcpSocket()),
        exporter_(NewOtlpExporter(Listen(), /*tls=*/false)) {}
  ~SilentCollector() { close(fd_); }

  Exporter& exporter() { return *exporter_; }

 private:
  std::string Listen() const {
    const int port = BindLoopback(fd_);
    EXPECT_NE(port, 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    return absl::StrCat("127.0.0.1:", port);
  }

  const int fd_;
  const std::unique_ptr<Exporter> exporter_;
};

TEST(OtlpTest, ASilentCollectorGetsTheTimeGivenAndNoMore) {
  const CallSpan span = Embedded();
  SilentCollector collector;
  const ExportResult result =
      collector.exporter().Export({&span, 1}, absl::Milliseconds(100));
  EXPECT_EQ(result.failed, 1);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kDeadlineExceeded)
      << result.status;
}

TEST(OtlpTest, CancelEndsTheExportInProgressAndLaterOnes) {
  const CallSpan span = Embedded();
  SilentCollector collector;
  std::thread cancel([&collector] {
    absl::SleepFor(absl::Milliseconds(50));  // earlier would do, too
    collector.exporter().Cancel();
  });
  for (int i = 0; i < 2; ++i) {
    const ExportResult result =
        collector.exporter().Export({&span, 1}, absl::Hours(1));
    EXPECT_EQ(result.failed, 1);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
    if (i == 0) cancel.join();
  }
}

}  // namespace
}  // namespace encoderd
