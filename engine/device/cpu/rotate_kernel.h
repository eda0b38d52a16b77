// Rotary positions: rotates Q and K of qkv [T,3H] in place, each head by the
// angles of its row's position (RotateOp says by which formula). Products and
// their sum in float, rounded once. 2 H elements a row read and written, 3
// FLOPs for each of those rotated.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_ROTATE_KERNEL_H_
#define ENCODERD_ENGINE_DEVICE_CPU_ROTATE_KERNEL_H_

#include "engine/device/cpu/simd.h"
#include "engine/device/ops.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

// (a[i], b[i]) = (a[i] cos[i] - b[i] sin[i], b[i] cos[i] + a[i] sin[i]).
template <typename E>
ENCODERD_INLINE void RotatePairs(const float* cos, const float* sin,
                                 int64_t pairs, typename E::Element* a,
                                 typename E::Element* b) {
  int64_t i = 0;
  for (; i + kLanes <= pairs; i += kLanes) {
    const F c = F32::Load(cos + i), s = F32::Load(sin + i);
    const F x = E::Load(a + i), y = E::Load(b + i);
    E::Store(x * c - y * s, a + i);
    E::Store(y * c + x * s, b + i);
  }
  for (; i < pairs; ++i) {
    const float x = E::LoadOne(a + i), y = E::LoadOne(b + i);
    E::StoreOne(x * cos[i] - y * sin[i], a + i);
    E::StoreOne(y * cos[i] + x * sin[i], b + i);
  }
}

template <typename E>
void RotateHeads(const RotateOp& op, void*) {
  const int64_t size = op.head_size, pairs = op.pairs;
  for (int64_t r = 0; r < op.qkv.rows; ++r) {
    const float* cos = op.cos + op.position_ids[r] * pairs;
    const float* sin = op.sin + op.position_ids[r] * pairs;
    auto* head =
        static_cast<typename E::Element*>(op.qkv.data) + r * op.qkv.cols;
    for (int64_t h = 0; h < 2 * op.heads; ++h, head += size)  // Q's, then K's
      RotatePairs<E>(cos, sin, pairs, head, head + pairs);
  }
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_ROTATE_KERNEL_H_
