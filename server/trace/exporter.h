// The span of an answered call, and what takes spans to a collector.
#ifndef ENCODERD_SERVER_TRACE_EXPORTER_H_
#define ENCODERD_SERVER_TRACE_EXPORTER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/pipeline/request.h"
#include "server/trace/trace_context.h"

namespace encoderd {

// What was computed for a call.
struct CallWork {
  int64_t tokens = 0;
  StageTimes stages;
};

// One answered call, or one answered request of an EmbedStream.
struct CallSpan {
  TraceContext context;
  std::string method;  // "Embed"
  std::string model;   // that took the call; empty: none did
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string reason;   // of an error
  absl::Time arrived;   // by SteadyNow until Tracer::End, as all times here;
  absl::Time answered;  // exported by the wall clock
  CallWork work;
  SpanId id = {};  // given by Tracer::End
};

// What became of the spans of one export.
struct ExportResult {
  absl::Status status;  // OK, or why `failed` spans were not taken
  int64_t failed = 0;
};

class Exporter {
 public:
  virtual ~Exporter() = default;
  // Sends spans; takes `timeout` at most. Called by one thread.
  virtual ExportResult Export(absl::Span<const CallSpan> spans,
                              absl::Duration timeout) = 0;
  // Ends the Export in progress with CANCELLED, and every later one at once.
  // From any thread.
  virtual void Cancel() = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_TRACE_EXPORTER_H_
