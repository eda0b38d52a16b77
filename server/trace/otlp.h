// Spans as OpenTelemetry collectors take them: OTLP over gRPC
// (https://opentelemetry.io/docs/specs/otlp/), attributes by its semantic
// conventions for RPC servers.
#ifndef ENCODERD_SERVER_TRACE_OTLP_H_
#define ENCODERD_SERVER_TRACE_OTLP_H_

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"
#include "server/trace/exporter.h"

namespace encoderd {

// One request with all `spans`; `instance` tells one server from another.
opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest ToOtlp(
    absl::Span<const CallSpan> spans, const std::string& instance);

// Sends spans to the collector at `target` (host:port), with TLS by the
// system's authorities if `tls`. Connects at the first export. Errors name
// `target` and have the code of the failed call.
std::unique_ptr<Exporter> NewOtlpExporter(const std::string& target, bool tls);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_TRACE_OTLP_H_
