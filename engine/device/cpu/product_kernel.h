// y [rows,out] = activation(x [rows,in] W^T + b), for some panels of columns.
//
// W is packed once in panels of kProductPanel vectors of outputs, [in words]
// [vectors * kLanes]. Each panel stays in L2 while all rows pass, and the next
// one is fetched meanwhile. The sums of some rows (float) come to a tile in L1,
// where bias and activation are applied; the result is rounded once.
//
// 2 in out FLOPs a row; W is read once for all rows of a call. bf16: pairs of
// bf16 are multiplied and added in float; of an odd `in` the last value counts
// alone, after the pairs.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_KERNEL_H_
#define ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_KERNEL_H_

#include "engine/device/cpu/dot.h"
#include "engine/device/cpu/element_wise_kernel.h"
#include "engine/device/cpu/pack_rows.h"
#include "engine/device/cpu/simd.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

constexpr int kProductPanel = kAccumulators >= 24 ? 3 : 2;  // vectors
constexpr int64_t kProductColumns = kProductPanel * kLanes;
constexpr int64_t kTileRows = 24;  // a multiple of each block's rows

template <typename E>
int64_t PackedFloats(int64_t in, int64_t out) {
  return Vectors(out) * kLanes * Words<E>(in);
}

template <typename E>
void PackWeights(const void* weights, int64_t in, int64_t out, float* packed) {
  PackRows<E, kProductPanel>(static_cast<const typename E::Element*>(weights),
                             in, out, in, packed);
}

// The columns of a panel, and what their sums need.
template <typename E>
struct Panel {
  const float* weights;
  const float* bias;
  const float* last;  // of an odd `in` in bf16: the last weights; else null
  int64_t vectors;
  int64_t columns;  // within the matrix, at most vectors * kLanes
};

// y = function(sums + bias), of one row; x_last: its last value.
template <typename E, typename Function>
ENCODERD_INLINE void FinishRow(const Function& function, const float* sums,
                               const Panel<E>& panel, float x_last,
                               typename E::Element* y) {
  for (int64_t v = 0; v < panel.vectors; ++v) {
    const int64_t at = v * kLanes, left = panel.columns - at;
    F sum = F32::Load(sums + at);
    if (panel.last != nullptr) {
      const U word = *reinterpret_cast<const UAny*>(panel.last + at);
      sum += x_last * reinterpret_cast<F>(word << 16);
    }
    const F value = function(sum + F32::Load(panel.bias + at));
    if (left >= kLanes) {
      E::Store(value, y + at);
    } else {
      typename E::Element some[kLanes];
      E::Store(value, some);
      __builtin_memcpy(y + at, some, left * sizeof(some[0]));
    }
  }
}

// Panels first .. first + count - 1.
template <typename E, typename Op>
void Product(const PackedWeights& weights, const Matrix& x, int64_t first,
             int64_t count, const Matrix& y) {
  using Element = typename E::Element;
  const int64_t in = weights.in, out = weights.out;
  const int64_t row_bytes = in * static_cast<int64_t>(sizeof(Element));
  const int64_t words = Words<E>(in), whole = row_bytes / 4;
  float tile[kTileRows * kProductColumns];
  for (int64_t p = first; p < first + count; ++p) {
    const int64_t column = p * kProductColumns;
    const int64_t left = Vectors(out) - p * kProductPanel;
    Panel<E> panel;
    panel.vectors = left < kProductPanel ? left : kProductPanel;
    panel.columns = out - column;
    panel.weights = weights.packed + column * words;
    panel.bias = weights.bias + column;
    const float* const end = panel.weights + words * panel.vectors * kLanes;
    panel.last = whole < words ? end - panel.vectors * kLanes : nullptr;
    Ahead ahead;
    // Of one block of rows every panel is read but once, as fast as it comes.
    if (x.rows > BlockRows(kProductPanel) && p + 1 < first + count) {
      ahead.at = reinterpret_cast<const char*>(end);
      ahead.end = ahead.at + words * panel.vectors * kLanes * 4;
    }
    for (int64_t r = 0; r < x.rows; r += kTileRows) {
      const int64_t rows = x.rows - r < kTileRows ? x.rows - r : kTileRows;
      const Element* from = static_cast<const Element*>(x.data) + r * in;
      Element* to = static_cast<Element*>(y.data) + r * out + column;
      DotPanel<Op>(panel.vectors, rows, reinterpret_cast<const char*>(from),
                   row_bytes, panel.weights, whole, tile, kProductColumns,
                   &ahead);
      WithActivation<E>(weights.activation, [&](auto function) {
        for (int64_t t = 0; t < rows; ++t, from += in, to += out) {
          FinishRow<E>(function, tile + t * kProductColumns, panel,
                       E::LoadOne(from + in - 1), to);
        }
      });
    }
  }
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_KERNEL_H_
