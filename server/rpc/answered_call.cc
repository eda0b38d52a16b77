#include "server/rpc/answered_call.h"

#include <utility>

#include "server/api/publish.h"
#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

AnswerStatus ToCount(const absl::Status& published) {
  AnswerStatus counted = {published.code(), "", IsCallerFull(published)};
  if (!published.ok() && published != absl::CancelledError()) {
    counted.reason = ReasonOf(published);
  }
  return counted;
}

}  // namespace

CallRecord Arrive(const CallEnvironment& environment, MethodMetrics* method,
                  const CallContext& context) {
  CallRecord record = {method, SteadyNow(), std::nullopt, nullptr};
  if (environment.tracer != nullptr) {
    record.trace = environment.tracer->Begin(context.traceparent());
  }
  return record;
}

void CountAnswer(const CallEnvironment& environment, const CallRecord& record,
                 const absl::Status& published, const CallWork& work,
                 absl::Span<const std::string> rejected) {
  const absl::Time now = SteadyNow();
  ModelCalls* const calls = record.model == nullptr
                                ? environment.metrics->NoModel()
                                : record.model->metrics;
  AnswerStatus counted = ToCount(published);
  record.method->Answered(calls, counted, now - record.arrival);
  if (published.ok()) {
    for (const std::string& reason : rejected) calls->Rejected(reason);
  }
  if (!record.trace.has_value()) return;
  environment.tracer->End({*record.trace, record.method->name(),
                           record.model == nullptr ? "" : record.model->name,
                           counted.code, std::move(counted.reason),
                           record.arrival, now, work});
}

void CountRefusedStream(const CallEnvironment& environment,
                        MethodMetrics* method, const absl::Status& refusal) {
  method->Answered(environment.metrics->NoModel(), ToCount(refusal),
                   absl::ZeroDuration());
}

}  // namespace encoderd
