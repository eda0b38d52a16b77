// Vectors of the instruction set that this file is compiled for: kLanes floats
// (16, 8 or 4) and the same count of 32-bit integers, by the compilers' vector
// extension, so that one source serves AVX-512, AVX2, SSE2 and NEON.
//
// Included by kernel sources only, which define ENCODERD_ISA: every name lives
// in a namespace of its instruction set, so that the linker can never take one
// set's code for another's.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_SIMD_H_
#define ENCODERD_ENGINE_DEVICE_CPU_SIMD_H_

#include <cstdint>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef ENCODERD_ISA
#error "define ENCODERD_ISA before including a kernel header"
#endif

#define ENCODERD_INLINE inline __attribute__((always_inline))
// Of templates, for loops full of constants: inlined next to a block of
// accumulators, which takes all registers, they may load each constant from
// memory every time.
#define ENCODERD_NOINLINE __attribute__((noinline))

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kAccumulators = 24;  // of 32 registers
#elif defined(__AVX2__)
constexpr int kLanes = 8;
constexpr int kAccumulators = 12;  // of 16 registers
#elif defined(__aarch64__)
constexpr int kLanes = 4;
constexpr int kAccumulators = 20;  // of 32 registers, with 4 of b and 5 of a
#else
constexpr int kLanes = 4;
constexpr int kAccumulators = 8;
#endif

typedef float F __attribute__((vector_size(4 * kLanes)));
typedef int32_t I __attribute__((vector_size(4 * kLanes)));
typedef uint32_t U __attribute__((vector_size(4 * kLanes)));
typedef uint16_t H __attribute__((vector_size(2 * kLanes)));
// The same at any address, over any type.
typedef float FAny
    __attribute__((vector_size(4 * kLanes), aligned(1), may_alias));
typedef uint32_t UAny
    __attribute__((vector_size(4 * kLanes), aligned(1), may_alias));
typedef uint16_t HAny
    __attribute__((vector_size(2 * kLanes), aligned(1), may_alias));

// Minus zero is any value itself, plus zero is not (-0): this is no arithmetic.
ENCODERD_INLINE F Splat(float value) { return value - F{}; }
// With a NaN in b the answer is b: bounds come first, so that a NaN stays one.
// x86's instructions do the same; of `?:` gcc makes a comparison and a blend
// where a or b is a constant. (maskz: gcc 12 warns of the plain ones, whose
// other operand its headers leave undefined.)
#if defined(__AVX512F__)
ENCODERD_INLINE F Max(F a, F b) { return _mm512_maskz_max_ps(0xffff, a, b); }
ENCODERD_INLINE F Min(F a, F b) { return _mm512_maskz_min_ps(0xffff, a, b); }
#elif defined(__AVX2__)
ENCODERD_INLINE F Max(F a, F b) { return _mm256_max_ps(a, b); }
ENCODERD_INLINE F Min(F a, F b) { return _mm256_min_ps(a, b); }
#elif defined(__SSE2__)
ENCODERD_INLINE F Max(F a, F b) { return _mm_max_ps(a, b); }
ENCODERD_INLINE F Min(F a, F b) { return _mm_min_ps(a, b); }
#else
ENCODERD_INLINE F Max(F a, F b) { return a > b ? a : b; }
ENCODERD_INLINE F Min(F a, F b) { return a < b ? a : b; }
#endif

// Elements in memory: float as it is; bf16 as the upper half of a float,
// rounded to nearest even. (io/half_floats.h has the host's conversion, which
// other flags compile.)
struct F32 {
  using Element = float;
  static constexpr bool kPrecise = true;  // worth functions of full precision
  static ENCODERD_INLINE F Load(const float* p) {
    return *reinterpret_cast<const FAny*>(p);
  }
  static ENCODERD_INLINE void Store(F v, float* p) {
    *reinterpret_cast<FAny*>(p) = v;
  }
  static ENCODERD_INLINE float LoadOne(const float* p) { return *p; }
  static ENCODERD_INLINE void StoreOne(float v, float* p) { *p = v; }
};

struct BF16 {
  using Element = uint16_t;
  static constexpr bool kPrecise = false;
  // v rounded, in the upper half; the lower one is of no use.
  static ENCODERD_INLINE U Rounded(F v) {
    const U bits = reinterpret_cast<U>(v);
    return v == v ? bits + 0x7fff + ((bits >> 16) & 1) : U{} + kNan;
  }
  static ENCODERD_INLINE F Load(const uint16_t* p) {
    const U wide = __builtin_convertvector(
        static_cast<H>(*reinterpret_cast<const HAny*>(p)), U);
    return reinterpret_cast<F>(wide << 16);
  }
  static ENCODERD_INLINE void Store(F v, uint16_t* p) {
#if defined(__AVX512BF16__)
    const __m256bh narrow = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(v));
    __builtin_memcpy(p, &narrow, sizeof(narrow));
#else
    *reinterpret_cast<HAny*>(p) = __builtin_convertvector(Rounded(v) >> 16, H);
#endif
  }
  static ENCODERD_INLINE float LoadOne(const uint16_t* p) {
    const uint32_t bits = static_cast<uint32_t>(*p) << 16;
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
  }
  static ENCODERD_INLINE void StoreOne(float v, uint16_t* p) {
    uint32_t bits;
    __builtin_memcpy(&bits, &v, sizeof(bits));
    bits += 0x7fff + ((bits >> 16) & 1);
    if (v != v) bits = kNan;
    *p = static_cast<uint16_t>(bits >> 16);
  }

 private:
  // For any NaN, whose sign rounding could change.
  static constexpr uint32_t kNan = 0x7fc00000;
};

// Floats rounded to bf16, which multiply-adds of floats take.
struct WideBF16 {
  using Element = float;
  static constexpr bool kPrecise = false;
  static ENCODERD_INLINE void Store(F v, float* p) {
    F32::Store(reinterpret_cast<F>(BF16::Rounded(v) & 0xffff0000), p);
  }
  static ENCODERD_INLINE void StoreOne(float v, float* p) {
    uint16_t narrow;
    BF16::StoreOne(v, &narrow);
    *p = BF16::LoadOne(&narrow);
  }
};

// Finite half floats, which tables alone have: only read. Exponent and fraction
// land in a float whose exponent is 112 too small. Adding 112 is right unless
// the exponent was 0: then one more makes 2^-14 of the exponent, which the
// subtraction takes away again (exact; no operand is subnormal).
struct F16 {
  using Element = uint16_t;
  static ENCODERD_INLINE F Load(const uint16_t* p) {
    const H half = *reinterpret_cast<const HAny*>(p);
#if defined(__AVX512F__)
    return reinterpret_cast<F>(
        _mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(half)));
#else
    const U wide = __builtin_convertvector(half, U);
    const U size = (wide & 0x7fff) << 13;
    const F normal = reinterpret_cast<F>(size + (112u << 23));
    const F small =
        reinterpret_cast<F>(size + (113u << 23)) - Splat(kLeastNormal);
    const F value = size < (1u << 23) ? small : normal;
    return reinterpret_cast<F>(reinterpret_cast<U>(value) | (wide & 0x8000)
                                                                << 16);
#endif
  }
  static ENCODERD_INLINE float LoadOne(const uint16_t* p) {
    const uint32_t size = static_cast<uint32_t>(*p & 0x7fff) << 13;
    const bool normal = size >= (1u << 23);
    const uint32_t bits = size + ((normal ? 112u : 113u) << 23);
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    if (!normal) value -= kLeastNormal;
    return *p & 0x8000 ? -value : value;
  }

 private:
  static constexpr float kLeastNormal = 0x1p-14f;
};

// The lanes moved around by kShift.
template <int kShift, int... kLane>
ENCODERD_INLINE F Rotate(F v, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(v, v, ((kLane + kShift) % kLanes)...);
}

// Sum and maximum over the lanes, in every lane, always in the same order.
template <int kShift = kLanes / 2>
ENCODERD_INLINE F SumInLanes(F v) {
  v += Rotate<kShift>(v, std::make_integer_sequence<int, kLanes>());
  if constexpr (kShift > 1) return SumInLanes<kShift / 2>(v);
  return v;
}

template <int kShift = kLanes / 2>
ENCODERD_INLINE F MaxInLanes(F v) {
  v = Max(v, Rotate<kShift>(v, std::make_integer_sequence<int, kLanes>()));
  if constexpr (kShift > 1) return MaxInLanes<kShift / 2>(v);
  return v;
}

ENCODERD_INLINE float SumLanes(F v) { return SumInLanes(v)[0]; }

template <int... kLane>
ENCODERD_INLINE I LaneNumbers(std::integer_sequence<int, kLane...>) {
  return I{kLane...};
}

// v in the first `count` lanes, `rest` in the others.
ENCODERD_INLINE F FirstLanes(F v, int64_t count, F rest) {
  const I lane = LaneNumbers(std::make_integer_sequence<int, kLanes>());
  return lane < static_cast<int32_t>(count) ? v : rest;
}

// Transposes kLanes x kLanes 32-bit values in registers: in stage s, rows i
// and i + s exchange the lanes whose index has the bit s.
template <int kStride, int... kLane>
ENCODERD_INLINE void ExchangeLanes(F* a, F* b,
                                   std::integer_sequence<int, kLane...>) {
  const F low = __builtin_shufflevector(
      *a, *b, (kLane & kStride ? kLanes + kLane - kStride : kLane)...);
  const F high = __builtin_shufflevector(
      *a, *b, (kLane & kStride ? kLanes + kLane : kLane + kStride)...);
  *a = low;
  *b = high;
}

template <int kStride>
ENCODERD_INLINE void TransposeStage(F* rows) {
  if constexpr (kStride < kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (i & kStride) continue;
      ExchangeLanes<kStride>(&rows[i], &rows[i + kStride],
                             std::make_integer_sequence<int, kLanes>());
    }
    TransposeStage<kStride * 2>(rows);
  }
}

ENCODERD_INLINE void Transpose(F* rows) { TransposeStage<1>(rows); }

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_SIMD_H_
