#include "server/trace/otlp.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"
#include "server/base/version.h"

namespace encoderd {
namespace {

namespace otlp = opentelemetry::proto;
using otlp::collector::trace::v1::ExportTracePartialSuccess;
using otlp::collector::trace::v1::ExportTraceServiceRequest;
using otlp::collector::trace::v1::ExportTraceServiceResponse;
using otlp::collector::trace::v1::TraceService;
using Attributes =
    google::protobuf::RepeatedPtrField<otlp::common::v1::KeyValue>;

void AddText(const char* key, const std::string& value, Attributes* to) {
  auto* const attribute = to->Add();
  attribute->set_key(key);
  attribute->mutable_value()->set_string_value(value);
}

void AddNumber(const char* key, int64_t value, Attributes* to) {
  auto* const attribute = to->Add();
  attribute->set_key(key);
  attribute->mutable_value()->set_int_value(value);
}

template <typename Id>
std::string Bytes(const Id& id) {
  return std::string(id.begin(), id.end());
}

uint64_t Nanoseconds(absl::Time time) {
  return static_cast<uint64_t>(absl::ToUnixNanos(time));
}

// By the conventions: what the caller did wrong is no error of the server.
bool IsServerError(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnavailable ||
         code == absl::StatusCode::kDeadlineExceeded ||
         code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

void AddEvent(const char* name, absl::Time time, otlp::trace::v1::Span* to) {
  if (time == absl::InfinitePast()) return;
  auto* const event = to->add_events();
  event->set_name(name);
  event->set_time_unix_nano(Nanoseconds(time));
}

void Fill(const CallSpan& from, otlp::trace::v1::Span* to) {
  to->set_trace_id(Bytes(from.context.trace_id));
  to->set_span_id(Bytes(from.id));
  if (from.context.parent != SpanId()) {
    to->set_parent_span_id(Bytes(from.context.parent));
  }
  to->set_name(absl::StrCat("encoderd.v1.Encoder/", from.method));
  to->set_kind(otlp::trace::v1::Span::SPAN_KIND_SERVER);
  to->set_start_time_unix_nano(Nanoseconds(from.arrived));
  to->set_end_time_unix_nano(Nanoseconds(from.answered));
  Attributes* const attributes = to->mutable_attributes();
  AddText("rpc.system", "grpc", attributes);
  AddText("rpc.service", "encoderd.v1.Encoder", attributes);
  AddText("rpc.method", from.method, attributes);
  AddNumber("rpc.grpc.status_code", static_cast<int64_t>(from.code),
            attributes);
  if (!from.model.empty()) AddText("encoderd.model", from.model, attributes);
  if (from.work.tokens > 0) {
    AddNumber("encoderd.tokens", from.work.tokens, attributes);
  }
  if (!from.reason.empty()) AddText("error.type", from.reason, attributes);
  AddEvent("tokenized", from.work.stages.tokenized, to);
  AddEvent("compute_started", from.work.stages.compute_started, to);
  AddEvent("computed", from.work.stages.computed, to);
  if (IsServerError(from.code)) {
    to->mutable_status()->set_code(otlp::trace::v1::Status::STATUS_CODE_ERROR);
    to->mutable_status()->set_message(from.reason);
  }
}

std::string NewInstance() {
  absl::BitGen random;
  return absl::StrCat(
      absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16));
}

class OtlpExporter final : public Exporter {
 public:
  OtlpExporter(const std::string& target, bool tls)
      : target_(target),
        stub_(TraceService::NewStub(grpc::CreateChannel(
            target, tls ? grpc::SslCredentials(grpc::SslCredentialsOptions())
                        : grpc::InsecureChannelCredentials()))) {}

  ExportResult Export(absl::Span<const CallSpan> spans,
                      absl::Duration timeout) override {
    const auto count = static_cast<int64_t>(spans.size());
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    if (!Begin(&context)) return {Failure(grpc::Status::CANCELLED), count};
    ExportTraceServiceResponse response;
    const grpc::Status status =
        stub_->Export(&context, ToOtlp(spans, instance_), &response);
    End();
    if (!status.ok()) return {Failure(status), count};
    return Rejected(response.partial_success(), count);
  }

  void Cancel() override {
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
    if (running_ != nullptr) running_->TryCancel();
  }

 private:
  // From now on Cancel cancels `context`. False: it came before.
  bool Begin(grpc::ClientContext* context) {
    absl::MutexLock lock(&mu_);
    if (!cancelled_) running_ = context;
    return !cancelled_;
  }
  void End() {
    absl::MutexLock lock(&mu_);
    running_ = nullptr;
  }

  absl::Status Failure(const grpc::Status& status) const {
    return {
        static_cast<absl::StatusCode>(status.error_code()),
        absl::StrCat("no export to ", target_, ": ", status.error_message())};
  }

  // A collector may reject some spans of a request that it answers with OK.
  ExportResult Rejected(const ExportTracePartialSuccess& partial,
                        int64_t count) const {
    const int64_t rejected =
        std::min(std::max<int64_t>(partial.rejected_spans(), 0), count);
    if (rejected == 0) return {absl::OkStatus(), 0};
    return {absl::InvalidArgumentError(
                absl::StrCat(target_, " rejected ", rejected, " of ", count,
                             " spans: ", partial.error_message())),
            rejected};
  }

  const std::string target_;
  const std::string instance_ = NewInstance();
  const std::unique_ptr<TraceService::Stub> stub_;
  absl::Mutex mu_;
  grpc::ClientContext* running_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

ExportTraceServiceRequest ToOtlp(absl::Span<const CallSpan> spans,
                                 const std::string& instance) {
  ExportTraceServiceRequest request;
  auto* const resource_spans = request.add_resource_spans();
  Attributes* const about =
      resource_spans->mutable_resource()->mutable_attributes();
  AddText("service.name", "encoderd", about);
  AddText("service.version", kVersion, about);
  AddText("service.instance.id", instance, about);
  auto* const scope_spans = resource_spans->add_scope_spans();
  scope_spans->mutable_scope()->set_name("encoderd");
  scope_spans->mutable_scope()->set_version(kVersion);
  for (const CallSpan& span : spans) Fill(span, scope_spans->add_spans());
  return request;
}

std::unique_ptr<Exporter> NewOtlpExporter(const std::string& target, bool tls) {
  return std::make_unique<OtlpExporter>(target, tls);
}

}  // namespace encoderd
