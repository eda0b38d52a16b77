// What a measurement counts: the calls that end inside a window of time, after
// a warm-up whose calls are the load's but not the figures'. The window closes
// when its time is up or enough calls have ended in it. What is in flight then
// is cut off and counts for nothing; calls begun in the warm-up count if they
// end in the window, so that neither edge bends the rate; and calls begin until
// it closes, so that no caller idles in it.
// Rules only: no clock and no thread, every time is given. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_MEASURE_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_MEASURE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace encoderd::ctl {

struct MeasureLimits {
  absl::Duration warm_up;   // 0: none
  absl::Duration duration;  // of the window
  int64_t calls = 0;        // that end in the window, answered or failed
};

struct Figures {
  absl::Duration measured;  // the window, as far as it went
  int64_t answered = 0;     // calls
  int64_t failed = 0;
  int64_t cut_off = 0;
  int64_t not_begun = 0;  // of an open loop: due, but none could begin
  int64_t texts = 0;      // of answered calls
  uint64_t tokens = 0;    // computed for them
  std::vector<absl::Duration> latencies;  // of answered calls, ascending
  struct Failure {
    int64_t calls = 0;
    std::string first;  // the first one in words
  };
  std::map<std::string, Failure> failures;  // by reason, else by code
  // The first INVALID_ARGUMENT, which ended the measurement, be it in the
  // warm-up: texts or options that will not do do not at the next call.
  absl::Status refused = absl::OkStatus();

  double PerSecond(double count) const;
  // The smallest latency that `share` of the answered calls do not exceed; 0
  // if none was answered.
  absl::Duration Quantile(double share) const;
  absl::Duration Mean() const;
};

// The fewest answered calls from which the figures mean something. A window of
// fewer than ten rounds of the callers is bent by its edges by more than a
// tenth, and of fewer than 100 latencies p99 is the largest.
int64_t FewestCalls(int64_t concurrency);

class Measure {
 public:
  Measure(const MeasureLimits& limits, absl::Time begin);

  // Whether one more call may begin, and counts it as in flight until it is
  // over.
  bool Begin(absl::Time now);
  // The end of a call that began at `began`.
  void Answered(absl::Time began, absl::Time now, int64_t texts,
                uint64_t tokens);
  void Failed(absl::Time now, const absl::Status& status);

  // True as soon as a call was refused with INVALID_ARGUMENT.
  bool Over(absl::Time now) const;
  // The share of the window that is past, 0 to 1, by time or by calls.
  double Share(absl::Time now) const;
  int64_t texts() const { return figures_.texts; }

  // Nothing may be told after it.
  Figures Close(absl::Time now);

 private:
  int64_t ended() const { return figures_.answered + figures_.failed; }
  // Takes a call off those in flight; whether it ended in the window.
  bool End(absl::Time now);

  const MeasureLimits limits_;
  const absl::Time open_;
  const absl::Time close_;
  int64_t in_flight_ = 0;
  absl::Time last_end_;
  Figures figures_;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_MEASURE_H_
