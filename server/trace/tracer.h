// Spans of calls on their way to a collector: one a call, sampled as its caller
// asks, queued in bounded memory, exported by one thread. A collector that is
// slow or away costs spans, which are counted, and never a call.
#ifndef ENCODERD_SERVER_TRACE_TRACER_H_
#define ENCODERD_SERVER_TRACE_TRACER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/log.h"
#include "server/base/mutex.h"
#include "server/trace/exporter.h"
#include "server/trace/trace_context.h"

namespace encoderd {

struct TraceOptions {
  // Of calls without a traceparent, the share that is traced, from 0 to 1.
  double ratio = 1;
  size_t max_waiting = 2048;                   // spans; more are dropped
  size_t max_batch = 512;                      // spans of one export
  absl::Duration interval = absl::Seconds(1);  // between exports
  absl::Duration export_timeout = absl::Seconds(5);
  // Of the exports in progress or waiting when the tracer leaves, together.
  absl::Duration last_timeout = absl::Seconds(2);
  absl::Duration log_interval = absl::Minutes(1);  // between lines of failures
};

struct TraceFigures {
  int64_t exported = 0;  // spans
  int64_t dropped = 0;   // the queue was full
  int64_t failed = 0;    // the collector did not take them
};

// Thread-safe.
class Tracer {
 public:
  // Throws where the system starts no thread.
  Tracer(const TraceOptions& options, std::unique_ptr<Exporter> exporter);
  // Exports what waits; cancels what has not ended after last_timeout.
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // The trace of a call that begins, or none if it is not traced. traceparent:
  // of its metadata; empty or malformed: the call begins its own trace.
  std::optional<TraceContext> Begin(absl::string_view traceparent) const;
  // Queues the span of an ended call under a new id, its times moved from
  // SteadyNow to the wall clock as that is now. Does not block.
  void End(CallSpan span);

  TraceFigures figures() const;

 private:
  void Run();
  bool leaving() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return leave_by_ != absl::InfiniteFuture();
  }
  bool Due() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return leaving() || waiting_.size() >= options_.max_batch;
  }
  // Takes the oldest spans and exports them. False: none waited.
  bool ExportSome(absl::Time deadline);

  const TraceOptions options_;
  const std::unique_ptr<Exporter> exporter_;
  LogLimit log_limit_;  // of the thread
  mutable Mutex mu_;
  CondVar changed_;  // Due() or finished_
  std::vector<CallSpan> waiting_ ABSL_GUARDED_BY(mu_);
  TraceFigures figures_ ABSL_GUARDED_BY(mu_);
  absl::Time leave_by_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool finished_ ABSL_GUARDED_BY(mu_) = false;  // nothing is exported any more
  std::thread thread_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_TRACE_TRACER_H_
