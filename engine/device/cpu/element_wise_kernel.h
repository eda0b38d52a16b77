// What is done element by element: activations, about 25 FLOPs each for GELU;
// the widening of elements to float.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_ELEMENT_WISE_KERNEL_H_
#define ENCODERD_ENGINE_DEVICE_CPU_ELEMENT_WISE_KERNEL_H_

#include "engine/base/kinds.h"
#include "engine/device/cpu/simd.h"
#include "engine/device/cpu/vector_math.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

// use(the function on vectors that `activation` names), exact enough for E.
template <typename E, typename Use>
ENCODERD_INLINE void WithActivation(Activation activation, const Use& use) {
  switch (activation) {
    case Activation::kNone:
      return use([](F x) { return x; });
    case Activation::kGeluErf:
      return use([](F x) { return GeluErf<E::kPrecise>(x); });
    case Activation::kGeluTanh:
      return use([](F x) { return GeluTanh(x); });
    case Activation::kRelu:
      return use([](F x) { return Max(F{}, x); });
  }
}

template <typename E>
void ToFloat(const void* from, int64_t count, float* to) {
  const auto* f = static_cast<const typename E::Element*>(from);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) F32::Store(E::Load(f + i), to + i);
  for (; i < count; ++i) to[i] = E::LoadOne(f + i);
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_ELEMENT_WISE_KERNEL_H_
