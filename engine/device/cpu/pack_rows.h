// Rows of a matrix as dot.h takes them. On the right as packed panels: keys of
// attention, weights of products. On the left as they lie, or widened. A word
// is 32 bits: a float, or two bf16.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_PACK_ROWS_H_
#define ENCODERD_ENGINE_DEVICE_CPU_PACK_ROWS_H_

#include <type_traits>

#include "engine/device/cpu/element_wise_kernel.h"
#include "engine/device/cpu/simd.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

ENCODERD_INLINE int64_t Vectors(int64_t count) {
  return (count + kLanes - 1) / kLanes;
}

// 32-bit words of `count` elements.
template <typename E>
ENCODERD_INLINE int64_t Words(int64_t count) {
  return (count * static_cast<int64_t>(sizeof(typename E::Element)) + 3) / 4;
}

// Whether Op multiplies rows of other elements than E.
template <typename E, typename Op>
constexpr bool kWidens = !std::is_same_v<typename Op::Left, E>;

struct LeftRows {
  const char* at;
  int64_t stride_bytes;
};

// rows [n,size] (stride in elements) as Op takes them on the left. wide:
// scratch of n * Words<E>(size) * Op::kLeftBytes bytes; unused if no rows are
// widened.
template <typename E, typename Op>
inline LeftRows TakeLeftRows(const typename E::Element* rows, int64_t stride,
                             int64_t n, int64_t size, float* wide) {
  if constexpr (!kWidens<E, Op>) {
    return {reinterpret_cast<const char*>(rows),
            stride * static_cast<int64_t>(sizeof(rows[0]))};
  } else {
    const int64_t bytes = Words<E>(size) * Op::kLeftBytes;
    const int64_t count = bytes / 4;
    for (int64_t r = 0; r < n; ++r) {
      float* const to = wide + r * count;
      ToFloat<E>(rows + r * stride, size, to);
      for (int64_t i = size; i < count; ++i) to[i] = 0;
    }
    return {reinterpret_cast<const char*>(wide), bytes};
  }
}

// rows [n,size] (stride in elements) to panels of kWidth vectors of rows:
// [words][vectors * kLanes] each, the last one narrower.
template <typename E, int kWidth>
inline void PackRows(const typename E::Element* rows, int64_t stride, int64_t n,
                     int64_t size, float* packed) {
  const int64_t vectors = Vectors(n), words = Words<E>(size);
  const int64_t bytes = size * sizeof(typename E::Element);
  const int64_t whole = bytes / 4 / kLanes * kLanes;
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t panel = v / kWidth * kWidth;
    const int64_t width = vectors - panel < kWidth ? vectors - panel : kWidth;
    float* to = packed + (panel * words + v - panel) * kLanes;
    const int64_t count = n - v * kLanes < kLanes ? n - v * kLanes : kLanes;
    const typename E::Element* from = rows + v * kLanes * stride;
    for (int64_t w = 0; w < whole; w += kLanes) {
      F block[kLanes];
      // Rows past the end repeat the last one; what they give is not used.
#pragma GCC unroll 16
      for (int64_t r = 0; r < kLanes; ++r) {
        const int64_t row = r < count ? r : count - 1;
        block[r] = F32::Load(reinterpret_cast<const float*>(
            reinterpret_cast<const char*>(from + row * stride) + w * 4));
      }
      Transpose(block);
#pragma GCC unroll 16
      for (int64_t r = 0; r < kLanes; ++r)
        F32::Store(block[r], to + (w + r) * width * kLanes);
    }
    for (int64_t w = whole; w < words; ++w) {
      const int64_t left = bytes - w * 4 < 4 ? bytes - w * 4 : 4;
      for (int64_t r = 0; r < kLanes; ++r) {
        float word = 0;
        if (r < count) {
          __builtin_memcpy(
              &word, reinterpret_cast<const char*>(from + r * stride) + w * 4,
              left);
        }
        to[w * width * kLanes + r] = word;
      }
    }
  }
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_PACK_ROWS_H_
