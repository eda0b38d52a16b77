// y [rows,out] = x [rows,in] W^T + bias, in float, for CPUs without AVX-512.
//
// oneDNN's kernels for them sum a row in another order when the number of rows
// changes; these never do. W is packed once in panels of kPanel vectors of
// outputs, [in][kPanel * kLanes], which stay in L2 while all rows pass.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_KERNEL_H_
#define ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_KERNEL_H_

#include "engine/device/cpu/dot.h"
#include "engine/device/cpu/simd.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

constexpr int64_t kPanelWidth = kPanel * kLanes;

inline int64_t PackedFloats(int64_t in, int64_t out) {
  return (out + kPanelWidth - 1) / kPanelWidth * kPanelWidth * in;
}

inline void PackWeights(const float* weights, int64_t in, int64_t out,
                        float* packed) {
  for (int64_t first = 0; first < out; first += kPanelWidth) {
    for (int64_t k = 0; k < in; ++k) {
      for (int64_t o = first; o < first + kPanelWidth; ++o)
        *packed++ = o < out ? weights[o * in + k] : 0.0f;
    }
  }
}

inline void Product(const float* x, int64_t rows, const float* packed,
                    const float* bias, int64_t in, int64_t out, float* y) {
  constexpr int64_t kTile = 24;  // rows
  float tile[kTile * kPanelWidth];
  for (int64_t first = 0; first < out; first += kPanelWidth) {
    const int64_t width = out - first < kPanelWidth ? out - first : kPanelWidth;
    for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
      const int64_t take = rows - r0 < kTile ? rows - r0 : kTile;
      DotPanel<MultiplyAddF32>(
          kPanel, take, reinterpret_cast<const char*>(x + r0 * in), in * 4,
          packed + first * in, in, tile, kPanelWidth);
      for (int64_t r = 0; r < take; ++r) {
        float* to = y + (r0 + r) * out + first;
        for (int64_t o = 0; o < width; ++o)
          to[o] = tile[r * kPanelWidth + o] + bias[first + o];
      }
    }
  }
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_KERNEL_H_
