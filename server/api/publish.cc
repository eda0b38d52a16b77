#include "server/api/publish.h"

#include "engine/base/error.h"
#include "server/base/log.h"
#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/reasons.h"

namespace encoderd {
namespace {

// Of each event: many calls that fail on the device do not hide a bug.
CountingLogLimit g_failed_limit(kFaultLinesAtOnce, kFaultLineInterval);
CountingLogLimit g_internal_limit(kFaultLinesAtOnce, kFaultLineInterval);

}  // namespace

std::string ReasonOf(const absl::Status& status) {
  const auto detail = GetErrorDetail(status);
  return detail.has_value() && !detail->reason.empty() ? detail->reason
                                                       : reason::kInternalFault;
}

std::optional<absl::Duration> RetryDelay(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    return GetRetryPause(status).value_or(absl::Milliseconds(500));
  }
  if (status.code() != absl::StatusCode::kUnavailable) return std::nullopt;
  return ReasonOf(status) == reason::kLoading ? absl::Milliseconds(500)
                                              : absl::Seconds(1);
}

absl::Status Publish(const absl::Status& status) {
  const auto detail = GetErrorDetail(status);
  const bool named = detail.has_value() && !detail->reason.empty();
  const bool fault = status.code() == absl::StatusCode::kInternal ||
                     status.code() == absl::StatusCode::kUnknown;
  if (named && !fault) return status;
  if (named && detail->metadata.count("error_id") != 0) {
    const auto left_out = g_failed_limit.Allows(SteadyNow());
    if (left_out.has_value()) {
      Log(LogLevel::kError, "call_failed",
          LogFields()
              .Add("error_id", detail->metadata.at("error_id"))
              .Add("reason", detail->reason)
              .AddLeftOut(*left_out));
    }
    return status;
  }
  const std::string id = NewErrorId();
  const auto left_out = g_internal_limit.Allows(SteadyNow());
  if (left_out.has_value()) {
    Log(LogLevel::kError, "internal_error",
        LogFields()
            .Add("error_id", id)
            .Add("status", status.ToString())
            .AddLeftOut(*left_out));
  }
  return InternalFaultError(id);
}

}  // namespace encoderd
