#include "client/cpp/retry.h"

#include <algorithm>

#include "absl/random/random.h"
#include "client/cpp/error.h"
#include "client/cpp/steady_time.h"
#include "service_config.h"

namespace encoderd::client {
namespace {

constexpr absl::Duration kReturnPause = absl::Milliseconds(500);

// The pause, or the least there is, if it ends before `deadline`.
std::optional<absl::Duration> IfBefore(absl::Time deadline,
                                       absl::Duration pause) {
  pause = std::max(pause, kLeastPause);
  if (SteadyNow() + pause >= deadline) return std::nullopt;
  return pause;
}

// `pause`, or up to half as much more at random: what a server refuses together
// then does not return together. At least half of what is `left` after the
// pause remains for the attempt.
absl::Duration Spread(absl::Duration pause,
                      absl::Duration left = absl::InfiniteDuration()) {
  thread_local absl::InsecureBitGen random;
  const absl::Duration more = std::min(pause, left - pause) / 2;
  return pause +
         std::max(more, absl::ZeroDuration()) * absl::Uniform(random, 0.0, 1.0);
}

}  // namespace

absl::Duration ReopenPause(const absl::Status& status, absl::Duration backoff) {
  const auto details = GetErrorDetails(status);
  if (absl::IsResourceExhausted(status) && details.has_value() &&
      details->retry_delay.has_value()) {
    backoff = std::max(backoff, *details->retry_delay);
  }
  return Spread(backoff);
}

std::optional<absl::Duration> ReturnPause(const absl::Status& status,
                                          absl::Time deadline) {
  // A server that ends may cancel calls that have reached it.
  if (!absl::IsUnavailable(status) && !absl::IsCancelled(status)) {
    return std::nullopt;
  }
  const auto details = GetErrorDetails(status);
  if (details.has_value() && details->reason == kLoading) return std::nullopt;
  return IfBefore(deadline, details.has_value() && details->retry_delay
                                ? *details->retry_delay
                                : kReturnPause);
}

std::optional<absl::Duration> RetryPause(const absl::Status& status,
                                         absl::Time deadline) {
  if (!absl::IsUnavailable(status) && !absl::IsResourceExhausted(status)) {
    return std::nullopt;
  }
  const auto details = GetErrorDetails(status);
  if (!details.has_value() || !details->retry_delay.has_value()) {
    return std::nullopt;
  }
  if (absl::IsUnavailable(status) && details->reason != kLoading) {
    return std::nullopt;  // a server that leaves: see ReturnPause
  }
  const auto pause = IfBefore(deadline, *details->retry_delay);
  if (!pause.has_value()) return std::nullopt;
  return Spread(*pause, deadline - SteadyNow());
}

std::optional<absl::Duration> LongRequestPause(const absl::Status& status,
                                               int attempt,
                                               absl::Time deadline) {
  const auto details = GetErrorDetails(status);
  // Without details it is gRPC's own, of a message that is too large.
  const bool full = absl::IsResourceExhausted(status) && details.has_value();
  if ((!absl::IsUnavailable(status) && !full) || attempt >= kMostAttempts) {
    return std::nullopt;
  }
  if (details.has_value() && details->retry_delay.has_value()) {
    return IfBefore(deadline, *details->retry_delay);
  }
  absl::Duration pause = kFirstBackoff;
  for (int i = 1; i < attempt; ++i) pause *= kBackoffMultiplier;
  return IfBefore(deadline, std::min(pause, kLongestBackoff));
}

absl::Status AfterRetries(const absl::Status& status,
                          const absl::Status& passing) {
  const bool late =
      absl::IsDeadlineExceeded(status) && GetReason(status).empty();
  return late && !passing.ok() ? passing : status;
}

}  // namespace encoderd::client
