// When the calls of an open loop are due: at random times that do not depend on
// any answer, so that a slow server is met by as many calls as a fast one.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_ARRIVALS_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_ARRIVALS_H_

#include <random>

#include "absl/time/time.h"

namespace encoderd::ctl {

// A Poisson process: gaps between calls are exponential with mean 1 / rate. The
// same gaps each time.
class Arrivals {
 public:
  // rate: calls per second, above 0.
  Arrivals(double rate, absl::Time begin) : gap_(rate), next_(begin) {}

  // When the next call is due.
  absl::Time next() const { return next_; }
  // It has begun.
  void Advance() { next_ += absl::Seconds(gap_(random_)); }

 private:
  std::mt19937_64 random_{1};
  std::exponential_distribution<double> gap_;
  absl::Time next_;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_ARRIVALS_H_
