#include "server/trace/tracer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/random/random.h"
#include "absl/time/clock.h"
#include "engine/base/start_thread.h"
#include "server/base/steady_time.h"

namespace encoderd {
namespace {

absl::BitGen& Random() {
  thread_local absl::BitGen random;
  return random;
}

// Not all zero, which would say that there is none.
template <typename Id>
Id NewId() {
  Id id = {};
  while (id == Id()) {
    for (uint8_t& byte : id) byte = absl::Uniform<uint8_t>(Random());
  }
  return id;
}

// A collector compares it with spans of other machines. All times move by the
// same, so that the order of events and their intervals stay.
void MoveToWallTime(CallSpan* span) {
  const absl::Duration ahead = absl::Now() - SteadyNow();
  StageTimes& stages = span->work.stages;
  for (absl::Time* time : {&span->arrived, &span->answered, &stages.tokenized,
                           &stages.compute_started, &stages.computed}) {
    *time += ahead;
  }
}

}  // namespace

Tracer::Tracer(const TraceOptions& options, std::unique_ptr<Exporter> exporter)
    : options_(options),
      exporter_(std::move(exporter)),
      log_limit_(1, options.log_interval),
      thread_(StartThread("trace", [this] { Run(); })) {}

Tracer::~Tracer() {
  bool finished = false;
  {
    MutexLock lock(&mu_);
    leave_by_ = SteadyNow() + options_.last_timeout;
    changed_.NotifyAll(&mu_);
    while (!finished_ && SteadyNow() < leave_by_) {
      changed_.WaitUntil(&mu_, leave_by_);
    }
    finished = finished_;
  }
  if (!finished) exporter_->Cancel();
  thread_.join();
}

std::optional<TraceContext> Tracer::Begin(absl::string_view traceparent) const {
  if (auto asked = ParseTraceparent(traceparent)) {
    if (!asked->sampled) return std::nullopt;
    return asked;
  }
  if (!absl::Bernoulli(Random(), options_.ratio)) return std::nullopt;
  TraceContext own;
  own.trace_id = NewId<TraceId>();
  own.sampled = true;
  return own;
}

void Tracer::End(CallSpan span) {
  span.id = NewId<SpanId>();
  MoveToWallTime(&span);
  MutexLock lock(&mu_);
  if (waiting_.size() >= options_.max_waiting) {
    ++figures_.dropped;
    return;
  }
  waiting_.push_back(std::move(span));
  if (Due()) changed_.NotifyAll(&mu_);
}

TraceFigures Tracer::figures() const {
  MutexLock lock(&mu_);
  return figures_;
}

void Tracer::Run() {
  absl::Time leave_by = absl::InfiniteFuture();
  while (leave_by == absl::InfiniteFuture()) {
    {
      MutexLock lock(&mu_);
      const absl::Time next = SteadyNow() + options_.interval;
      while (!Due() && SteadyNow() < next) changed_.WaitUntil(&mu_, next);
      leave_by = leave_by_;
    }
    if (leave_by == absl::InfiniteFuture()) {
      ExportSome(SteadyNow() + options_.export_timeout);
    }
  }
  while (SteadyNow() < leave_by && ExportSome(leave_by)) {
  }
  MutexLock lock(&mu_);
  finished_ = true;
  changed_.NotifyAll(&mu_);
}

bool Tracer::ExportSome(absl::Time deadline) {
  std::vector<CallSpan> spans;
  {
    MutexLock lock(&mu_);
    if (waiting_.empty()) return false;
    const auto end =
        waiting_.begin() +
        static_cast<int64_t>(std::min(waiting_.size(), options_.max_batch));
    spans.assign(std::make_move_iterator(waiting_.begin()),
                 std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
  }
  const ExportResult result = exporter_->Export(spans, deadline - SteadyNow());
  {
    MutexLock lock(&mu_);
    figures_.failed += result.failed;
    figures_.exported += static_cast<int64_t>(spans.size()) - result.failed;
  }
  if (!result.status.ok() && log_limit_.Allows(SteadyNow())) {
    Log(LogLevel::kWarning, "trace_export_failed",
        LogFields()
            .Add("spans", result.failed)
            .Add("code", absl::StatusCodeToString(result.status.code()))
            .Add("message", result.status.message()));
  }
  return true;
}

}  // namespace encoderd
