// The activations in fp64, by their formulas: what tests compare with.
#ifndef ENCODERD_TESTS_SUPPORT_ACTIVATION_H_
#define ENCODERD_TESTS_SUPPORT_ACTIVATION_H_

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/base/kinds.h"

namespace encoderd {

inline double Activate(double x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kGeluErf:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return std::max(x, 0.0);
  }
  std::abort();
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_ACTIVATION_H_
