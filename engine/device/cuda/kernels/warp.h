// Sums and maxima over the 32 lanes of a warp, every lane getting the same
// bits: a butterfly, so that the order is fixed.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_WARP_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_WARP_H_

#include "engine/device/cuda/kernels/primitives.h"

namespace encoderd {
namespace cuda {

ENCODERD_DEVICE float WarpSum(float value) {
  ENCODERD_UNROLL
  for (int32_t mask = 16; mask > 0; mask /= 2) value += ShuffleXor(value, mask);
  return value;
}

ENCODERD_DEVICE float WarpMax(float value) {
  ENCODERD_UNROLL
  for (int32_t mask = 16; mask > 0; mask /= 2)
    value = Max(value, ShuffleXor(value, mask));
  return value;
}

// Sum over the block, at most 32 warps; `scratch` is shared memory for 32
// floats, free again after the caller's next Barrier. Every thread calls it.
ENCODERD_DEVICE float BlockSum(float value, float* scratch) {
  const int32_t thread = ThreadIndex();
  const float of_warp = WarpSum(value);
  if (thread % 32 == 0) scratch[thread / 32] = of_warp;
  Barrier();
  const int32_t warps = BlockThreads() / 32;
  float sum = 0.0f;
  for (int32_t w = 0; w < warps; ++w) sum += scratch[w];
  return sum;
}

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_WARP_H_
