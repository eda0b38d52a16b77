// Enumerations and settings that kernels read too: plain, so that nvcc and
// every instruction set's flags can compile them.
#ifndef ENCODERD_ENGINE_BASE_KINDS_H_
#define ENCODERD_ENGINE_BASE_KINDS_H_

#include <cstdint>

namespace encoderd {

// Element types of checkpoints and of compute. LayerNorm, softmax, pooling and
// normalization are always computed in float, whatever the dtype of the
// products.
enum class DType : int32_t { kF32, kBF16, kF16 };

enum class Pooling : int32_t {
  kCls,           // the first token
  kMean,          // sum / n
  kMax,           // element-wise maximum
  kMeanSqrtLen,   // sum / sqrt(n)
  kWeightedMean,  // sum over i of (i+1) x_i, divided by sum of (i+1)
  kLastToken,     // the last token
};

// What follows a product.
enum class Activation : int32_t { kNone, kGeluErf, kGeluTanh, kRelu };

// Which keys attention sees: key j is seen by query i where i - j <= left and
// j - i <= right; negative: no limit on that side.
struct Reach {
  int32_t left = -1;
  int32_t right = -1;

  bool operator==(const Reach&) const = default;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_KINDS_H_
