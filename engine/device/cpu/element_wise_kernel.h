// Activations in place over a block that a product has just left in L2, and
// the widening of elements to float. One read and one write of
// `count` elements; GELU about 25 FLOPs for each.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_ELEMENT_WISE_KERNEL_H_
#define ENCODERD_ENGINE_DEVICE_CPU_ELEMENT_WISE_KERNEL_H_

#include "engine/base/kinds.h"
#include "engine/device/cpu/simd.h"
#include "engine/device/cpu/vector_math.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

// values [count] = function(values); the last, partial vector takes the same
// arithmetic by way of a padded copy.
template <typename E, typename Function>
ENCODERD_INLINE void Map(Function function, int64_t count,
                         typename E::Element* values) {
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const F first = function(E::Load(values + i));
    const F second = function(E::Load(values + i + kLanes));
    E::Store(first, values + i);
    E::Store(second, values + i + kLanes);
  }
  while (i < count) {
    const int64_t left = count - i < kLanes ? count - i : kLanes;
    typename E::Element padded[kLanes] = {};
    __builtin_memcpy(padded, values + i, left * sizeof(padded[0]));
    E::Store(function(E::Load(padded)), padded);
    __builtin_memcpy(values + i, padded, left * sizeof(padded[0]));
    i += left;
  }
}

// use(the function on vectors that `activation` names), exact enough for E.
template <typename E, typename Use>
ENCODERD_INLINE void WithActivation(Activation activation, const Use& use) {
  switch (activation) {
    case Activation::kNone:
      return use([](F x) { return x; });
    case Activation::kGeluErf:
      return use(
          [](F x) { return GeluErf<sizeof(typename E::Element) == 4>(x); });
    case Activation::kGeluTanh:
      return use([](F x) { return GeluTanh(x); });
    case Activation::kRelu:
      return use([](F x) { return Max(F{}, x); });
  }
}

template <typename E>
void MapElementWise(Activation activation, int64_t count, void* values) {
  auto* v = static_cast<typename E::Element*>(values);
  WithActivation<E>(activation,
                    [&](auto function) { Map<E>(function, count, v); });
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
