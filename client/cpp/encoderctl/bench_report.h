// What bench says of a measurement, to people and to programs. Thread-safe:
// only reads.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_BENCH_REPORT_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_BENCH_REPORT_H_

#include <string>

#include "client/cpp/encoderctl/load.h"
#include "client/cpp/encoderctl/measure.h"

namespace encoderd::ctl {

// Must not outlive what it borrows.
struct BenchReport {
  const Figures& figures;  // of `load` under `limits`
  const Load& load;
  const MeasureLimits& limits;
  std::string model;  // its name
  bool stopped;       // by a signal, before a limit was reached

  // A line for each kind of figure, and one for each reason to doubt them.
  std::string ToText() const;
  // The same as one JSON object on one line.
  std::string ToJson() const;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_BENCH_REPORT_H_
