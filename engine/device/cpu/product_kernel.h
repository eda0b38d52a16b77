// y [rows,out] = activation(x [rows,in] W^T + b), for some panels of columns.
//
// W is packed once in panels of kWidestPanel vectors of outputs, [in words]
// [vectors * kLanes]. The inputs are taken in equal blocks of at most
// kBlockWords: all panels of the first block, then those of the next. While all
// rows pass one part of a panel, the next part is fetched, or as much of it as
// few rows have steps for. 128 rows and both parts stay in 1 MiB of L2. Sums of
// kSumWords words (float) are added up in a tile, then with those of the blocks
// before, which travel through memory: the fewer blocks, the better. After the
// last block bias and activation are applied, and the result is rounded once.
// Rows that the multiply-adds take as floats are widened a block at a time.
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

constexpr int64_t kProductColumns = kWidestPanel * kLanes;

template <typename E>
int64_t PackedFloats(int64_t in, int64_t out) {
  return Vectors(out) * kLanes * Words<E>(in);
}

// to [count] = from, rounded.
template <typename E>
ENCODERD_INLINE void ToElements(const float* from, int64_t count,
                                typename E::Element* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    E::Store(F32::Load(from + i), to + i);
  for (; i < count; ++i) E::StoreOne(from[i], to + i);
}

template <typename E>
void PackWeights(const float* weights, int64_t in, int64_t out, float* packed,
                 float* scratch) {
  auto* const rows = reinterpret_cast<typename E::Element*>(scratch);
  for (int64_t first = 0; first < out; first += kProductColumns) {
    const int64_t count =
        out - first < kProductColumns ? out - first : kProductColumns;
    ToElements<E>(weights + first * in, count * in, rows);
    PackRows<E, kWidestPanel>(rows, in, count, in,
                              packed + first * Words<E>(in));
  }
}

template <typename E>
constexpr int64_t kBlockWords = sizeof(typename E::Element) == 4 ? 768 : 512;
// Words of one sum in registers. In float many sums of some terms are more
// exact than one of all.
template <typename E>
constexpr int64_t kSumWords = sizeof(typename E::Element) == 4 ? 128
                                                               : kBlockWords<E>;

// Equal blocks; a multiple of 16 words but for the last.
template <typename E>
inline int64_t BlockOfWords(int64_t words) {
  const int64_t blocks = (words + kBlockWords<E> - 1) / kBlockWords<E>;
  const int64_t step = 16 * blocks;
  return blocks <= 1 ? words : (words + step - 1) / step * 16;
}

// A block of x that is widened: [rows, block].
template <typename E, typename Op>
int64_t WideBytes(int64_t rows, int64_t words) {
  return kWidens<E, Op> ? rows * BlockOfWords<E>(words) * Op::kLeftBytes : 0;
}

// The widened block, and the sums of all blocks but the last: [rows, whole
// panels].
template <typename E, typename Op>
int64_t ProductScratchBytes(int64_t rows, int64_t in, int64_t out) {
  const int64_t words = Words<E>(in);
  const int64_t wide = WideBytes<E, Op>(rows, words);
  if (BlockOfWords<E>(words) >= words) return wide;
  return wide + rows * (out + kProductColumns) * 4;
}

// The columns of a panel, and what their sums need.
struct Panel {
  const float* weights;
  const float* bias;
  const float* last;  // of an odd `in` in bf16: the last weights; else null
  int64_t vectors;
  int64_t columns;  // within the matrix, at most vectors * kLanes
};

// sums = tile + sums, or the tile where `first`; one row.
ENCODERD_INLINE void KeepRow(const float* tile, bool first, int64_t vectors,
                             float* sums) {
  for (int64_t v = 0; v < vectors; ++v) {
    const F value = F32::Load(tile + v * kLanes);
    F32::Store(first ? value : value + F32::Load(sums + v * kLanes),
               sums + v * kLanes);
  }
}

// y = function(tile + sums + bias), of one row; sums null: none. x_last: its
// last value.
template <typename E, typename Function>
ENCODERD_INLINE void FinishRow(const Function& function, const float* tile,
                               const float* sums, const Panel& panel,
                               float x_last, typename E::Element* y) {
  for (int64_t v = 0; v < panel.vectors; ++v) {
    const int64_t at = v * kLanes, left = panel.columns - at;
    F sum = F32::Load(tile + at);
    if (sums != nullptr) sum += F32::Load(sums + at);
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

// FinishRow of a panel whose columns all count and which has no last weights.
template <typename E, typename Function>
ENCODERD_INLINE void FinishWholeRow(const Function& function, const float* tile,
                                    const float* sums, const float* bias,
                                    typename E::Element* y) {
#pragma GCC unroll 4
  for (int64_t at = 0; at < kProductColumns; at += kLanes) {
    F sum = F32::Load(tile + at);
    if (sums != nullptr) sum += F32::Load(sums + at);
    E::Store(function(sum + F32::Load(bias + at)), y + at);
  }
}

// Rows r .. r + rows - 1 of y, of which the tile has the last sums; sums null:
// there are no others.
template <typename E>
ENCODERD_NOINLINE void FinishRows(const PackedWeights& weights, const Matrix& x,
                                  const Panel& panel, int64_t r, int64_t rows,
                                  const float* tile, const float* sums,
                                  int64_t sums_stride, typename E::Element* y) {
  const int64_t in = weights.in, out = weights.out;
  const auto* const from = static_cast<const typename E::Element*>(x.data);
  const bool whole = panel.last == nullptr && panel.columns == kProductColumns;
  WithActivation<E>(weights.activation, [&](auto function) {
    for (int64_t t = r; t < r + rows; ++t, tile += kProductColumns) {
      const float* const others =
          sums == nullptr ? nullptr : sums + t * sums_stride;
      if (whole) {
        FinishWholeRow<E>(function, tile, others, panel.bias, y + t * out);
      } else {
        FinishRow<E>(function, tile, others, panel,
                     E::LoadOne(from + (t + 1) * in - 1), y + t * out);
      }
    }
  });
}

// Brings near what FinishRows writes: on x86, stores wait for each other, so
// one to a line that is far away holds up those after it.
template <typename Element>
ENCODERD_INLINE void FetchOutput(const Panel& panel, int64_t rows, int64_t out,
                                 const Element* y) {
  constexpr int64_t kInLine =
      Ahead::kLine / static_cast<int64_t>(sizeof(Element));
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t at = 0; at < panel.columns; at += kInLine)
      __builtin_prefetch(y + t * out + at, 1, 2);
  }
}

// One part of a panel with all rows: `steps` words from word k on; left_rows:
// those words of x.
template <typename E, typename Op>
inline void MultiplyPart(const PackedWeights& weights, const Matrix& x,
                         const LeftRows& left_rows, const Panel& panel,
                         int64_t k, int64_t steps, Ahead ahead, float* sums,
                         int64_t sums_stride, typename E::Element* y) {
  using Element = typename E::Element;
  const int64_t in = weights.in;
  const bool ends = k + steps >= in * static_cast<int64_t>(sizeof(Element)) / 4;
  float tile[kTileRows * kProductColumns];
  for (int64_t r = 0; r < x.rows; r += kTileRows) {
    const int64_t rows = x.rows - r < kTileRows ? x.rows - r : kTileRows;
    Dot dot = {left_rows.at + r * left_rows.stride_bytes,
               left_rows.stride_bytes,
               panel.weights + k * panel.vectors * kLanes,
               0,
               tile,
               kProductColumns};
    if (ends) FetchOutput(panel, rows, weights.out, y + r * weights.out);
    int64_t done = 0;
    do {
      dot.k = steps - done < kSumWords<E> ? steps - done : kSumWords<E>;
      dot.add = done > 0;
      DotPanel<Op>(panel.vectors, rows, dot, &ahead);
      dot.a += dot.k * Op::kLeftBytes;
      dot.b += dot.k * panel.vectors * kLanes;
      done += dot.k;
    } while (done < steps);
    if (!ends) {
      for (int64_t t = 0; t < rows; ++t) {
        KeepRow(tile + t * kProductColumns, k == 0, panel.vectors,
                sums + (r + t) * sums_stride);
      }
      continue;
    }
    FinishRows<E>(weights, x, panel, r, rows, tile, k == 0 ? nullptr : sums,
                  sums_stride, y);
  }
}

// Of the panel that begins with `column`.
ENCODERD_INLINE int64_t PanelColumns(const PackedWeights& weights,
                                     int64_t column) {
  const int64_t left = weights.out - column;
  return left < kProductColumns ? left : kProductColumns;
}

// At most `steps` words from word k on of a panel; none: nothing.
template <typename E>
inline Ahead PartAhead(const PackedWeights& weights, int64_t panel, int64_t k,
                       int64_t steps) {
  if (panel < 0) return {};
  const int64_t words = Words<E>(weights.in), column = panel * kProductColumns;
  const int64_t width = Vectors(PanelColumns(weights, column)) * kLanes;
  const int64_t count = words - k < steps ? words - k : steps;
  const float* const at = weights.packed + column * words + k * width;
  return {reinterpret_cast<const char*>(at),
          reinterpret_cast<const char*>(at + count * width)};
}

template <typename E, typename Op>
void Product(const PackedWeights& weights, const Matrix& x,
             const Panels& panels, const Matrix& y, void* scratch) {
  using Element = typename E::Element;
  const int64_t words = Words<E>(weights.in);
  const int64_t whole = weights.in * static_cast<int64_t>(sizeof(Element)) / 4;
  const int64_t block = BlockOfWords<E>(words);
  constexpr int64_t kInWord = 4 / sizeof(Element);  // elements
  const auto* const from = static_cast<const Element*>(x.data);
  auto* const wide = static_cast<float*>(scratch);
  float* const sums = wide + WideBytes<E, Op>(x.rows, words) / 4;
  for (int64_t k = 0; k == 0 || k < whole; k += block) {
    const int64_t steps = whole - k < block ? whole - k : block;
    const bool ends = k + steps >= whole;
    const LeftRows left_rows = TakeLeftRows<E, Op>(
        from + k * kInWord, weights.in, x.rows, steps * kInWord, wide);
    for (int64_t p = 0; p < panels.count; ++p) {
      const int64_t column = (panels.first + p) * kProductColumns;
      Panel panel;
      panel.columns = PanelColumns(weights, column);
      panel.vectors = Vectors(panel.columns);
      panel.weights = weights.packed + column * words;
      panel.bias = weights.bias + column;
      const int64_t width = panel.vectors * kLanes;
      panel.last = whole < words ? panel.weights + whole * width : nullptr;
      // Of one block of rows every part is read but once, as fast as it comes.
      Ahead ahead;
      if (x.rows > BlockRows(kWidestPanel)) {
        if (p + 1 < panels.count) {
          ahead = PartAhead<E>(weights, panels.first + p + 1, k, block);
        } else if (!ends) {
          ahead = PartAhead<E>(weights, panels.first, k + block, block);
        } else {
          ahead = PartAhead<E>(weights, panels.next, 0, block);
        }
      }
      MultiplyPart<E, Op>(weights, x, left_rows, panel, k, steps, ahead,
                          sums + p * kProductColumns,
                          panels.count * kProductColumns,
                          static_cast<Element*>(y.data) + column);
    }
  }
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_KERNEL_H_
