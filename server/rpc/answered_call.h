// What is counted and traced of an answered call, or of an answered request of
// an EmbedStream, from when it arrives until it is answered. Thread-safe: plain
// functions; a record is its call's own.
#ifndef ENCODERD_SERVER_RPC_ANSWERED_CALL_H_
#define ENCODERD_SERVER_RPC_ANSWERED_CALL_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/api/model_registry.h"
#include "server/observe/metrics.h"
#include "server/rpc/call_context.h"
#include "server/rpc/call_environment.h"
#include "server/trace/exporter.h"
#include "server/trace/trace_context.h"

namespace encoderd {

struct CallRecord {
  MethodMetrics* method = nullptr;
  absl::Time arrival;                  // by SteadyNow
  std::optional<TraceContext> trace;   // none: it is not traced
  const ServedModel* model = nullptr;  // that took it; null: none did
};

// Of a call, or a request of the call with this context, that arrives now.
CallRecord Arrive(const CallEnvironment& environment, MethodMetrics* method,
                  const CallContext& context);

// Counts the answer and ends the span. Called once, before the answer is sent,
// so that a caller with the answer finds it counted. published: what the caller
// gets, or absl::CancelledError() of a caller that left, which is no rejection.
// work: what was computed. rejected: the reasons of its inputs' errors, counted
// if it is OK.
void CountAnswer(const CallEnvironment& environment, const CallRecord& record,
                 const absl::Status& published, const CallWork& work = {},
                 absl::Span<const std::string> rejected = {});

// Counts a stream that is refused before its first request: it has no model,
// takes no time and is not traced. refusal: as `published` above.
void CountRefusedStream(const CallEnvironment& environment,
                        MethodMetrics* method, const absl::Status& refusal);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_ANSWERED_CALL_H_
