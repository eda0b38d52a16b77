// Spans of calls on their way to a collector: one a call, sampled as its caller
// asks, queued in bounded memory, exported by one thread. A collector that is
// slow or away costs spans, which are counted, and never a call.
#ifndef ENCODERD_SERVER_TRACE_TRACER_H_
#define ENCODERD_SERVER_TRACE_TRACER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
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
  std::string reason;  // of an error
  absl::Time arrived;
  absl::Time answered;
  CallWork work;
  SpanId id = {};  // given by Tracer::End
};

struct TraceOptions {
  // Of calls without a traceparent, the share that is traced, from 0 to 1.
  double ratio = 1;
  size_t max_waiting = 2048;                   // spans; more are dropped
  size_t max_batch = 512;                      // spans of one export
  absl::Duration interval = absl::Seconds(1);  // between exports
  absl::Duration export_timeout = absl::Seconds(5);
  absl::Duration last_timeout =
      absl::Seconds(2);  // of all that leave at the end
};

struct TraceFigures {
  int64_t exported = 0;  // spans
  int64_t dropped = 0;   // the queue was full
  int64_t failed = 0;    // the collector did not take them
};

// Thread-safe.
class Tracer {
 public:
  // Sends spans; takes `timeout` at most. Called by one thread.
  using Export = std::function<absl::Status(absl::Span<const CallSpan> spans,
                                            absl::Duration timeout)>;

  // Throws where the system starts no thread.
  Tracer(const TraceOptions& options, Export to_collector);
  // Exports what waits, for last_timeout at most.
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // The trace of a call that begins, or none if it is not traced. traceparent:
  // of its metadata; empty or malformed: the call begins its own trace.
  std::optional<TraceContext> Begin(absl::string_view traceparent) const;
  // Queues the span of an ended call under a new id. Does not block.
  void End(CallSpan span);

  TraceFigures figures() const;

 private:
  void Run();
  bool Due() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || waiting_.size() >= options_.max_batch;
  }
  // Takes the oldest spans and exports them. False: none waited.
  bool ExportSome(absl::Time deadline);

  const TraceOptions options_;
  const Export export_;
  mutable absl::Mutex mu_;
  std::vector<CallSpan> waiting_ ABSL_GUARDED_BY(mu_);
  TraceFigures figures_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_TRACE_TRACER_H_
