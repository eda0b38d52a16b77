// The activations of a feed-forward layer; GELU by erf, in half of
// erff's instructions.
//
// With a = |x|, GELU(x) = max(x, 0) - a * Phi(-a), and Phi(-a), the normal
// distribution's tail, is 2^p(a): one polynomial for every a, no branch, and no
// difference of near values where x is negative. p is as close to log2 of
// Phi(-a) as the element that the result is rounded to needs, and falls ever
// faster past the fitted range.
//
// Error against the formula in double, but for Exp2's own (under 2 units), and
// whether or not a product and a sum are one instruction:
//
// Half, and all but bf16 (degree 10, over [0, 6]):
// - relative: 1.3e-7 for x > 0.5, 2.8e-7 for x > -1, 1.6e-6 for x > -3, 3.4e-6
//   for x > -5, 5.4e-6 for x > -6, where 0.5 x (1 + erf(x / sqrt(2))) in float
//   has no digit left;
// - absolute: 6e-8 for x < 0.
// Bf16, half a unit of which is 2.0e-3 to 3.9e-3 of a value (degree 5, over
// [0, 5]):
// - relative: 6.6e-5 for x > 0, 9.1e-5 for x > -3, 2.6e-4 for x > -4, 2.1e-3
//   for x > -5;
// - absolute: 1.5e-5 for x < 0, 3e-9 for x < -5.
// An infinity and a NaN give NaN, and a NaN does of every activation.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_GELU_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_GELU_H_

#include "engine/device/cuda/kernels/primitives.h"

namespace encoderd {
namespace cuda {

// log2 of Phi(-a), a >= 0.
template <typename T>
ENCODERD_DEVICE float Log2OfTail(float a) {
  float p = -1.9291434e-08f;
  p = p * a + 6.1382718e-07f;
  p = p * a + -8.3409714e-06f;
  p = p * a + 6.1205435e-05f;
  p = p * a + -2.2755681e-04f;
  p = p * a + -1.0656062e-04f;
  p = p * a + 7.0741512e-03f;
  p = p * a + -5.2524175e-02f;
  p = p * a + -4.5919523e-01f;
  p = p * a + -1.1511068e+00f;
  return p * a + -1.0f;
}
template <>
ENCODERD_DEVICE float Log2OfTail<Bf16>(float a) {
  float p = -3.2726591e-04f;
  p = p * a + 5.9214206e-03f;
  p = p * a + -4.8672676e-02f;
  p = p * a + -4.6329024e-01f;
  p = p * a + -1.1497927e+00f;
  return p * a + -1.0f;
}

// For a result that is rounded to T.
template <typename T>
ENCODERD_DEVICE float FastGeluErf(float x) {
  const float a = Max(x, -x);
  return Max(x, 0.0f) - a * Exp2(Log2OfTail<T>(a));
}

// Of elements T: FastGeluErf in 16 bits, erff's GELU in float.
template <typename T, Activation kActivation>
ENCODERD_DEVICE float Activate(float x) {
  if (kActivation == Activation::kNone) return x;
  if (kActivation == Activation::kRelu) return x <= 0.0f ? 0.0f : x;
  if (kActivation == Activation::kGeluErf) {
    return sizeof(T) == 2 ? FastGeluErf<T>(x)
                          : 0.5f * x * (1.0f + Erf(x * 0.70710678118654752f));
  }
  const float inner = 0.79788456080286536f * (x + 0.044715f * x * x * x);
  return 0.5f * x * (1.0f + Tanh(inner));
}

// Calls launch.template operator()<kActivation>().
template <typename LaunchWith>
int WithActivation(Activation activation, const LaunchWith& launch) {
  switch (activation) {
    case Activation::kGeluErf:
      return launch.template operator()<Activation::kGeluErf>();
    case Activation::kGeluTanh:
      return launch.template operator()<Activation::kGeluTanh>();
    case Activation::kRelu:
      return launch.template operator()<Activation::kRelu>();
    case Activation::kNone:
      break;
  }
  return launch.template operator()<Activation::kNone>();
}

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_GELU_H_
