#include "client/cpp/encoderctl/measure.h"

#include <algorithm>
#include <cmath>

#include "client/cpp/error.h"

namespace encoderd::ctl {

double Figures::PerSecond(double count) const {
  const double seconds = absl::ToDoubleSeconds(measured);
  return seconds > 0 ? count / seconds : 0;
}

absl::Duration Figures::Quantile(double share) const {
  if (latencies.empty()) return absl::ZeroDuration();
  const double rank = std::ceil(share * static_cast<double>(latencies.size()));
  const auto at = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  return latencies[std::min(at, latencies.size() - 1)];
}

absl::Duration Figures::Mean() const {
  if (latencies.empty()) return absl::ZeroDuration();
  absl::Duration sum;
  for (const absl::Duration latency : latencies) sum += latency;
  return sum / static_cast<int64_t>(latencies.size());
}

int64_t FewestCalls(int64_t concurrency) {
  return std::max<int64_t>(100, 10 * concurrency);
}

Measure::Measure(const MeasureLimits& limits, absl::Time begin)
    : limits_(limits),
      open_(begin + limits.warm_up),
      close_(open_ + limits.duration),
      last_end_(open_) {}

bool Measure::Begin(absl::Time now) {
  if (Over(now)) return false;
  ++in_flight_;
  return true;
}

bool Measure::End(absl::Time now) {
  --in_flight_;
  if (now < open_ || Over(now)) return false;
  last_end_ = now;
  return true;
}

void Measure::Answered(absl::Time began, absl::Time now, int64_t texts,
                       uint64_t tokens) {
  if (!End(now)) return;
  ++figures_.answered;
  figures_.texts += texts;
  figures_.tokens += tokens;
  figures_.latencies.push_back(now - began);
}

void Measure::Failed(absl::Time now, const absl::Status& status) {
  const bool counts = End(now);
  if (absl::IsInvalidArgument(status)) figures_.refused.Update(status);
  if (!counts) return;
  ++figures_.failed;
  const auto details = client::GetErrorDetails(status);
  Figures::Failure& failure =
      figures_.failures[details.has_value()
                            ? details->reason
                            : absl::StatusCodeToString(status.code())];
  if (failure.calls++ == 0) failure.first = client::Describe(status);
}

bool Measure::Over(absl::Time now) const {
  return now >= close_ || ended() >= limits_.calls || !figures_.refused.ok();
}

double Measure::Share(absl::Time now) const {
  const double by_time = absl::FDivDuration(now - open_, close_ - open_);
  const double by_calls =
      static_cast<double>(ended()) / static_cast<double>(limits_.calls);
  return std::clamp(std::max(by_time, by_calls), 0.0, 1.0);
}

Figures Measure::Close(absl::Time now) {
  const absl::Time end =
      ended() >= limits_.calls ? last_end_ : std::clamp(now, open_, close_);
  figures_.measured = end - open_;
  figures_.cut_off = in_flight_;
  std::sort(figures_.latencies.begin(), figures_.latencies.end());
  return std::move(figures_);
}

}  // namespace encoderd::ctl
