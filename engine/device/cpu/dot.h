// The register-blocked inner loop of every product.
//
//   out [R, C * kLanes] = a [R, k words] b [k words, C * kLanes]
//
// A word is 32 bits: a float, or a pair of bf16. vdpbf16ps multiplies a pair at
// once; otherwise its two are multiplied one after the other as floats, to
// which a's are widened before. b is a packed panel; of a one word is broadcast
// for every row and step. R * C accumulators stay in registers: for each step
// (or half of a pair) C loads of b and R broadcasts feed R * C fused
// multiply-adds.
//
// Each output is one sum in the order of k, whatever R and C are: how rows and
// columns are divided never changes a bit.
//
// A panel that the loop needs later can be brought near meanwhile (Ahead): a
// line of cache a step. What hardware prefetches begins again at each panel.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_DOT_H_
#define ENCODERD_ENGINE_DEVICE_CPU_DOT_H_

#include "engine/device/cpu/simd.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

// Vectors of the widest panel: what leaves a block of rows the fewest loads per
// multiply-add.
constexpr int kWidestPanel = kAccumulators >= 20   ? 4
                             : kAccumulators >= 12 ? 3
                                                   : 2;
// The same, but even: a head of 32 or 64 values makes whole panels.
constexpr int kPanel = kWidestPanel / 2 * 2;

constexpr int64_t kTileRows = 48;  // of sums between two stores

// What a word of a and a word of b add to a sum, by kParts multiply-adds:
// Step<0>, then Step<1>, with Part<0> and Part<1> of b's word. Left: the
// elements of a, of which kLeftBytes count as a word.
struct WholeWords {
  static constexpr int kParts = 1;
  static constexpr int64_t kLeftBytes = 4;

  template <int kPart>
  static ENCODERD_INLINE F Part(F word) {
    return word;
  }
};

struct MultiplyAddF32 : WholeWords {
  using Left = F32;

  template <int kPart>
  static ENCODERD_INLINE F Step(F sum, const char* a, F b) {
    float word;
    __builtin_memcpy(&word, a, sizeof(word));
    return sum + Splat(word) * b;
  }
};

// Pairs of bf16, by multiply-adds of floats. The bits are those of vdpbf16ps,
// which adds the second product of a pair before the first, each rounded once
// (Intel's manual; tests compare them), except that it treats numbers below
// 2^-126 as zeros. Part 0 is the second of a pair.
struct MultiplyAddPairs {
  using Left = WideBF16;
  static constexpr int kParts = 2;
  static constexpr int64_t kLeftBytes = 8;

  template <int kPart>
  static ENCODERD_INLINE F Part(F word) {
    const U bits = reinterpret_cast<U>(word);
    return reinterpret_cast<F>(kPart == 0 ? bits & 0xffff0000 : bits << 16);
  }
  template <int kPart>
  static ENCODERD_INLINE F Step(F sum, const char* a, F b) {
    return MultiplyAddF32::Step<0>(sum, a + (kPart == 0 ? 4 : 0), b);
  }
};

#if defined(__AVX512BF16__)
struct MultiplyAddBF16 : WholeWords {
  using Left = BF16;

  template <int kPart>
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

// Memory that is needed soon; each block of rows fetches a part of it.
struct Ahead {
  static constexpr int64_t kLine = 64;  // bytes

  const char* at = nullptr;
  const char* end = nullptr;

  // What the next `lines` lines of it begin at; null: nothing is left.
  ENCODERD_INLINE const char* Take(int64_t lines) {
    if (at >= end) return nullptr;
    const char* const taken = at;
    at += lines * kLine;
    return taken;
  }
};

// What is multiplied: rows of a, k words each, by a panel; where it goes.
struct Dot {
  const char* a;
  int64_t a_stride_bytes;
  const float* b;  // [k][vectors]
  int64_t k;
  float* out;
  int64_t out_stride;
  bool add = false;  // to what is in out

  ENCODERD_INLINE void SkipRows(int64_t rows) {
    a += rows * a_stride_bytes;
    out += rows * out_stride;
  }
};

// sum += one part of a word of each row by one of each vector of b.
template <typename Op, int kPart, int R, int C>
ENCODERD_INLINE void DotPart(const char* a, int64_t a_stride_bytes,
                             const float* b, F (&sum)[R][C]) {
  F panel[C];
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c)
    panel[c] = Op::template Part<kPart>(F32::Load(b + c * kLanes));
#pragma GCC unroll 24
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      sum[r][c] =
          Op::template Step<kPart>(sum[r][c], a + r * a_stride_bytes, panel[c]);
    }
  }
}

// The next kCount words of each row by those of each vector of b; next: kCount
// lines to fetch meanwhile, or null.
template <typename Op, int kCount, int R, int C>
ENCODERD_INLINE void DotSteps(Dot* dot, const char** next, F (&sum)[R][C]) {
  if (*next != nullptr) {
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i)
      __builtin_prefetch(*next + i * Ahead::kLine, 0, 2);
    *next += kCount * Ahead::kLine;
  }
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
    DotPart<Op, 0>(dot->a, dot->a_stride_bytes, dot->b, sum);
    if constexpr (Op::kParts == 2)
      DotPart<Op, 1>(dot->a, dot->a_stride_bytes, dot->b, sum);
    dot->a += Op::kLeftBytes;
    dot->b += C * kLanes;
  }
  dot->k -= kCount;
}

// Steps for one look at the counters: where two threads share a core, it issues
// too few instructions for all its multiply-adds. gcc keeps the sums of AVX2's
// panels of two vectors in registers over two steps only.
template <typename Op, int C>
constexpr int kSteps = kAccumulators == 12 && C == 2 && Op::kParts == 1 ? 2 : 4;

// next: k lines to fetch, or null.
template <typename Op, int R, int C>
ENCODERD_INLINE void DotBlock(Dot dot, const char* next) {
  F sum[R][C] = {};
  constexpr int kAtOnce = kSteps<Op, C>;
  while (dot.k >= kAtOnce) DotSteps<Op, kAtOnce>(&dot, &next, sum);
  while (dot.k > 0) DotSteps<Op, 1>(&dot, &next, sum);
#pragma GCC unroll 24
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      float* const to = dot.out + r * dot.out_stride + c * kLanes;
      F32::Store(dot.add ? F32::Load(to) + sum[r][c] : sum[r][c], to);
    }
  }
}

// One block of exactly `rows` rows, 1 <= rows <= R.
template <typename Op, int R, int C>
inline void DotSomeRows(int64_t rows, const Dot& dot, const char* next) {
  if constexpr (R > 1) {
    if (rows < R) return DotSomeRows<Op, R - 1, C>(rows, dot, next);
  }
  DotBlock<Op, R, C>(dot, next);
}

// Rows of one block over panels of `vectors` vectors, at most.
constexpr int BlockRows(int vectors) {
  return kAccumulators / vectors < 12 ? kAccumulators / vectors : 12;
}

template <typename Op, int C>
inline void DotRows(int64_t rows, Dot dot, Ahead* ahead) {
  constexpr int kRows = BlockRows(C);
  for (int64_t blocks = (rows + kRows - 1) / kRows; blocks > 0; --blocks) {
    const int64_t take = (rows + blocks - 1) / blocks;  // even blocks
    DotSomeRows<Op, kRows, C>(take, dot, ahead->Take(dot.k));
    dot.SkipRows(take);
    rows -= take;
  }
}

// dot.b holds `vectors` <= kWidestPanel vectors a step.
template <typename Op>
inline void DotPanel(int64_t vectors, int64_t rows, const Dot& dot,
                     Ahead* ahead) {
  if constexpr (kWidestPanel >= 4) {
    if (vectors == 4) return DotRows<Op, 4>(rows, dot, ahead);
  }
  if constexpr (kWidestPanel >= 3) {
    if (vectors == 3) return DotRows<Op, 3>(rows, dot, ahead);
  }
  if (vectors == 2) return DotRows<Op, 2>(rows, dot, ahead);
  DotRows<Op, 1>(rows, dot, ahead);
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_DOT_H_
