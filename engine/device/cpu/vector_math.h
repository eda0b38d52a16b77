// exp, GELU and tanh-GELU over vectors; polynomials fitted so that their
// largest error is minimal (tests measure the errors stated next to them).
#ifndef ENCODERD_ENGINE_DEVICE_CPU_VECTOR_MATH_H_
#define ENCODERD_ENGINE_DEVICE_CPU_VECTOR_MATH_H_

#include "engine/device/cpu/simd.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

constexpr float kLog2e = 1.44269504088896341f;

// 2^t for t <= 127, relative error below 2e-7; kPrecise = false: 1e-4, which
// is enough where the result is rounded to bf16. t below -126 counts as -126.
//
// t = n + f, |f| <= 1/2: adding 1.5 * 2^23 rounds t to the integer n and
// leaves n in the low bits, from where it is added to the exponent of 2^f.
template <bool kPrecise>
ENCODERD_INLINE F Exp2(F t) {
  constexpr float kRound = 12582912.0f;
  t = Max(Splat(-126.0f), t);
  const F shifted = t + kRound;
  const F f = t - (shifted - kRound);
  F p;
  if constexpr (kPrecise) {
    p = Splat(1.3276457320898771e-3f);
    p = p * f + 9.675540961325169e-3f;
    p = p * f + 5.550713464617729e-2f;
    p = p * f + 0.24022120237350464f;
    p = p * f + 0.6931469440460205f;
    p = p * f + 1.0f;
  } else {
    p = Splat(5.517154559493065e-2f);
    p = p * f + 0.2426111102104187f;
    p = p * f + 0.6932610273361206f;
    p = p * f + 0.9999280571937561f;
  }
  return reinterpret_cast<F>(reinterpret_cast<I>(p) +
                             (reinterpret_cast<I>(shifted) << 23));
}

// sum of c[i] u^i
template <int kCount>
ENCODERD_INLINE F Polynomial(const float (&c)[kCount], F u) {
  F p = Splat(c[kCount - 1]);
#pragma GCC unroll 16
  for (int i = kCount - 2; i >= 0; --i) p = p * u + c[i];
  return p;
}

// x Phi(x), Phi the normal distribution: the exact (erf) GELU. Phi(x) - 1/2 is
// odd: x times a polynomial in x^2 over |x| <= end, beyond which Phi is 0 or 1.
// Largest absolute error 6e-7, at |x| near 5.6; kPrecise = false: 1.3e-4, which
// is enough where the result is rounded to bf16.
template <bool kPrecise>
ENCODERD_INLINE F GeluErf(F x) {
  constexpr float kEnd = kPrecise ? 5.6f : 4.2f;
  const F low = Max(Splat(-kEnd), x);
  const F c = Min(Splat(kEnd), low);
  const F u = c * c * (2.0f / (kEnd * kEnd)) - 1.0f;
  if constexpr (kPrecise) {
    constexpr float kPhi[] = {
        0.126259595f,    -0.0630512983f,  0.0469807722f,  -0.038344916f,
        0.0319722854f,   -0.0263205059f,  0.0209224056f,  -0.0157014877f,
        0.011057009f,    -0.00770316599f, 0.00519654946f, -0.00260487036f,
        0.000923377404f, -0.00083730882f, 0.00080182153f, -0.000264554837f};
    return low * (c * Polynomial(kPhi, u)) + 0.5f * low;
  } else {
    constexpr float kPhi[] = {0.167853668f,   -0.0815601051f, 0.0559752509f,
                              -0.0380535983f, 0.0236722659f,  -0.0161286592f,
                              0.0112735033f,  -0.00399166811f};
    return low * (c * Polynomial(kPhi, u) + 0.5f);
  }
}

// 0.5 x (1 + tanh(u)) = x / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3).
ENCODERD_INLINE F GeluTanh(F x) {
  constexpr float kScale = -2.0f * 0.7978845608028654f * kLog2e;
  const F u = x * (1.0f + 0.044715f * (x * x));
  return x / (1.0f + Exp2<true>(Min(Splat(126.0f), u * kScale)));
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_VECTOR_MATH_H_
