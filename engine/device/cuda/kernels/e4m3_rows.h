// Rows in e4m3 (ops.h) from eight values of a lane: what quantize_rows.cu and
// add_layer_norm.cu share, so that both give a row the same codes and scale.
//
// inverse = kLargestE4m3 / the row's largest, which is 0 for an infinite row:
// then 0 * infinity is its NaN.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_E4M3_ROWS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_E4M3_ROWS_H_

#include "engine/device/cuda/kernels/primitives.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

// The larger of `largest` and the absolute values, NaNs passed over.
template <typename T>
ENCODERD_DEVICE float LargerMagnitude(const Vector8<T>& vector, float largest) {
  ENCODERD_UNROLL
  for (int32_t i = 0; i < 8; ++i) {
    const float value = ToFloat(vector.values[i]);
    largest = Max(largest, Max(value, -value));
  }
  return largest;
}

// Codes of vector * inverse, two in each of pairs[0] .. pairs[3].
template <typename T>
ENCODERD_DEVICE void E4m3Codes(const Vector8<T>& vector, float inverse,
                               uint16_t* pairs) {
  ENCODERD_UNROLL
  for (int32_t i = 0; i < 4; ++i) {
    pairs[i] = E4m3Pair(ToFloat(vector.values[2 * i]) * inverse,
                        ToFloat(vector.values[2 * i + 1]) * inverse);
  }
}

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_E4M3_ROWS_H_
