// Gated activations: y [rows,F] = activation(first F columns of x [rows,2F]) *
// the other F. The function and the product in float, rounded once. 3 F
// elements a row moved; GELU about 25 FLOPs for each of F.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_GATE_KERNEL_H_
#define ENCODERD_ENGINE_DEVICE_CPU_GATE_KERNEL_H_

#include "engine/device/cpu/element_wise_kernel.h"
#include "engine/device/cpu/simd.h"
#include "engine/device/ops.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

// y [count] = function(x) * factors; the last, partial vector takes the same
// arithmetic by way of padded copies.
template <typename E, typename Function>
ENCODERD_INLINE void GateRow(Function function, const typename E::Element* x,
                             const typename E::Element* factors, int64_t count,
                             typename E::Element* y) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    E::Store(function(E::Load(x + i)) * E::Load(factors + i), y + i);
  if (i == count) return;
  typename E::Element first[kLanes] = {}, second[kLanes] = {};
  const int64_t bytes = (count - i) * sizeof(first[0]);
  __builtin_memcpy(first, x + i, bytes);
  __builtin_memcpy(second, factors + i, bytes);
  E::Store(function(E::Load(first)) * E::Load(second), first);
  __builtin_memcpy(y + i, first, bytes);
}

template <typename E>
void Gate(const GateOp& op, void*) {
  using Element = typename E::Element;
  const int64_t count = op.y.cols;
  const auto* x = static_cast<const Element*>(op.x.data);
  auto* y = static_cast<Element*>(op.y.data);
  WithActivation<E>(op.activation, [&](auto function) {
    for (int64_t r = 0; r < op.y.rows; ++r) {
      const Element* row = x + r * 2 * count;
      GateRow<E>(function, row, row + count, count, y + r * count);
    }
  });
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_GATE_KERNEL_H_
