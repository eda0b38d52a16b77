// The register-blocked inner loop of every product that is not oneDNN's.
//
//   out [R, C * kLanes] = a [R, k words] b [k words, C * kLanes]
//
// A word is 32 bits: one float, or a pair of bf16 that is multiplied and added
// pairwise (vdpbf16ps). b is a packed panel; a is read as it lies, one word
// broadcast for every row and step. R * C accumulators stay in registers: for
// each step C loads of b and R broadcasts feed R * C fused multiply-adds.
//
// Each output is one sum in the order of k, whatever R and C are: blocking
// never changes a bit.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_DOT_H_
#define ENCODERD_ENGINE_DEVICE_CPU_DOT_H_

#include "engine/device/cpu/simd.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

constexpr int kPanel = kAccumulators >= 20 ? 4 : 2;  // vectors of a wide panel

struct MultiplyAddF32 {
  static ENCODERD_INLINE F Step(F sum, const char* a, F b) {
    float word;
    __builtin_memcpy(&word, a, sizeof(word));
    return sum + Splat(word) * b;
  }
};

#if defined(__AVX512BF16__)
struct MultiplyAddBF16 {
  static ENCODERD_INLINE F Step(F sum, const char* a, F b) {
    int32_t word;
    __builtin_memcpy(&word, a, sizeof(word));
    return reinterpret_cast<F>(
        _mm512_dpbf16_ps(reinterpret_cast<__m512>(sum),
                         reinterpret_cast<__m512bh>(_mm512_set1_epi32(word)),
                         reinterpret_cast<__m512bh>(b)));
  }
};
#endif

template <typename Op, int R, int C>
ENCODERD_INLINE void DotBlock(const char* a, int64_t a_stride_bytes,
                              const float* b, int64_t k, float* out,
                              int64_t out_stride) {
  F sum[R][C] = {};
  for (int64_t step = 0; step < k; ++step) {
    F panel[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c)
      panel[c] = F32::Load(b + (step * C + c) * kLanes);
#pragma GCC unroll 24
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        sum[r][c] =
            Op::Step(sum[r][c], a + r * a_stride_bytes + step * 4, panel[c]);
      }
    }
  }
#pragma GCC unroll 24
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c)
      F32::Store(sum[r][c], out + r * out_stride + c * kLanes);
  }
}

// One block of exactly `rows` rows, 1 <= rows <= R.
template <typename Op, int R, int C>
inline void DotSomeRows(int64_t rows, const char* a, int64_t a_stride_bytes,
                        const float* b, int64_t k, float* out,
                        int64_t out_stride) {
  if constexpr (R > 1) {
    if (rows < R) {
      DotSomeRows<Op, R - 1, C>(rows, a, a_stride_bytes, b, k, out, out_stride);
      return;
    }
  }
  DotBlock<Op, R, C>(a, a_stride_bytes, b, k, out, out_stride);
}

template <typename Op, int C>
inline void DotRows(int64_t rows, const char* a, int64_t a_stride_bytes,
                    const float* b, int64_t k, float* out, int64_t out_stride) {
  constexpr int kRows = kAccumulators / C < 12 ? kAccumulators / C : 12;
  for (int64_t blocks = (rows + kRows - 1) / kRows; blocks > 0; --blocks) {
    const int64_t take = (rows + blocks - 1) / blocks;  // even blocks
    DotSomeRows<Op, kRows, C>(take, a, a_stride_bytes, b, k, out, out_stride);
    a += take * a_stride_bytes;
    out += take * out_stride;
    rows -= take;
  }
}

// b holds `vectors` <= kPanel vectors a step.
template <typename Op>
inline void DotPanel(int64_t vectors, int64_t rows, const char* a,
                     int64_t a_stride_bytes, const float* b, int64_t k,
                     float* out, int64_t out_stride) {
  if constexpr (kPanel == 4) {
    if (vectors == 4)
      return DotRows<Op, 4>(rows, a, a_stride_bytes, b, k, out, out_stride);
    if (vectors == 3)
      return DotRows<Op, 3>(rows, a, a_stride_bytes, b, k, out, out_stride);
  }
  if (vectors == 2)
    return DotRows<Op, 2>(rows, a, a_stride_bytes, b, k, out, out_stride);
  DotRows<Op, 1>(rows, a, a_stride_bytes, b, k, out, out_stride);
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_DOT_H_
