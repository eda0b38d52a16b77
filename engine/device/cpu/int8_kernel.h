// Products in 8 bits: y [rows,out] = activation(x [rows,in] W^T + bias) of bf16
// in and out, by vpdpbusd, which multiplies four codes of a row of x by four of
// a row of W and adds all to a 32-bit sum.
//
// Rows of x and of W are rotated alike, which leaves their product as it is and
// their columns of one size. Then a row of x becomes codes of 0 to 255, 255
// steps from its least value to its largest, and a row of W codes of -127 to
// 127. Their products are added as integers, exactly, and then scaled by both
// rows in float: a row's bits depend on itself alone, whatever the order.
//
// Packed W: scales [columns] and sums of codes [columns], padded to whole
// panels; then panels of kPanel vectors of outputs, four values of `in` next to
// each other: [in / 4][kPanel * kLanes][4], padded by codes of 0.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_INT8_KERNEL_H_
#define ENCODERD_ENGINE_DEVICE_CPU_INT8_KERNEL_H_

#include "engine/device/cpu/dot.h"
#include "engine/device/cpu/element_wise_kernel.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/simd.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

constexpr int64_t kInt8Panel = kPanel * kLanes;
constexpr int kRotated = 8;              // vectors
constexpr float kLeastSpan = 0x1p-100f;  // a row of zeros counts as this

typedef uint8_t Bytes __attribute__((vector_size(kLanes)));
typedef uint8_t BytesAny
    __attribute__((vector_size(kLanes), aligned(1), may_alias));

struct MultiplyAddInt8 : WholeWords {
  template <int kPart>
  static ENCODERD_INLINE F Step(F sum, const char* a, F b) {
    int32_t word;
    __builtin_memcpy(&word, a, sizeof(word));
    return reinterpret_cast<F>(_mm512_dpbusd_epi32(
        reinterpret_cast<__m512i>(sum), _mm512_set1_epi32(word),
        reinterpret_cast<__m512i>(b)));
  }
};

inline int64_t CodeBytes(int64_t in) { return (in + 63) / 64 * 64; }

inline int64_t PaddedColumns(int64_t out) {
  return (out + kInt8Panel - 1) / kInt8Panel * kInt8Panel;
}

inline int64_t Int8PackedFloats(int64_t in, int64_t out) {
  return PaddedColumns(out) * (2 + (in + 3) / 4);
}

// value = scale * (code - zero)
struct RowScale {
  float scale;
  int32_t zero;
};

// The codes of all rows, their scales, and a rotated row.
inline int64_t Int8ScratchBytes(int64_t rows, int64_t in, int64_t out) {
  const auto row = static_cast<int64_t>(sizeof(RowScale));
  return (rows + 4) * CodeBytes(in) + rows * row;
}

// The nearest integers, ties to even, of |v| below 2^21.
ENCODERD_INLINE I Whole(F v) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
  return reinterpret_cast<I>(v + kRound) - reinterpret_cast<I>(Splat(kRound));
}

// row [size] = x, whose blocks of kRotated vectors are added and subtracted
// among themselves (a Hadamard matrix), so that no column stands out. Times
// the same of W it is kRotated times as much as before.
template <typename E>
ENCODERD_INLINE void RotateRow(const typename E::Element* x, int64_t size,
                               float* row) {
  int64_t h = 0;
  for (; h + kRotated * kLanes <= size; h += kRotated * kLanes) {
    F v[kRotated];
#pragma GCC unroll 8
    for (int i = 0; i < kRotated; ++i) v[i] = E::Load(x + h + i * kLanes);
#pragma GCC unroll 3
    for (int apart = 1; apart < kRotated; apart *= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < kRotated; ++i) {
        if (i & apart) continue;
        const F a = v[i], b = v[i + apart];
        v[i] = a + b;
        v[i + apart] = a - b;
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRotated; ++i) F32::Store(v[i], row + h + i * kLanes);
  }
  for (; h < size; ++h) row[h] = E::LoadOne(x + h);  // too few for a block
}

// codes [CodeBytes(size)]; whatever is beyond size meets weights of 0. row: as
// many floats.
template <typename E>
ENCODERD_INLINE RowScale QuantizeRow(const typename E::Element* x, int64_t size,
                                     float* row, uint8_t* codes) {
  RotateRow<E>(x, size, row);
  for (int64_t h = size; h < CodeBytes(size); ++h) row[h] = 0;
  F high = {}, low = {}, broken = {};
  for (int64_t h = 0; h < size; h += kLanes) {
    const F v = F32::Load(row + h);
    high = Max(high, v);
    low = Max(low, -v);
    broken += v * 0.0f;  // NaN if a value is not finite
  }
  const float most = MaxInLanes(high)[0], least = MaxInLanes(low)[0];
  const float span = most + least < kLeastSpan ? kLeastSpan : most + least;
  const float factor = 255.0f / span;
  const I zero = Whole(Splat(least * factor));
  for (int64_t h = 0; h < size; h += kLanes) {
    // Rounding may lead past either end.
    I code = Whole(F32::Load(row + h) * factor) + zero;
    code = code < 255 ? code : 255;
    *reinterpret_cast<BytesAny*>(codes + h) =
        __builtin_convertvector(code > 0 ? code : 0, Bytes);
  }
  return {span / 255.0f + SumLanes(broken), zero[0]};
}

template <typename E>
void QuantizeRows(const void* x, int64_t rows, int64_t in, float* row,
                  uint8_t* codes, RowScale* scales) {
  const auto* from = static_cast<const typename E::Element*>(x);
  for (int64_t r = 0; r < rows; ++r)
    scales[r] =
        QuantizeRow<E>(from + r * in, in, row, codes + r * CodeBytes(in));
}

// A row of W as RotateRow leaves it; packed: every kInt8Panel-th word.
inline void PackRow(const float* row, int64_t in, int8_t* packed, float* scale,
                    int32_t* sum) {
  float largest = kLeastSpan;
  for (int64_t k = 0; k < in; ++k)
    largest = __builtin_fmaxf(largest, __builtin_fabsf(row[k]));
  const float factor = 127.0f / largest;
  *scale = largest / 127.0f;
  *sum = 0;
  for (int64_t k = 0; k < in; ++k) {
    const auto code = static_cast<int8_t>(__builtin_rintf(row[k] * factor));
    packed[k / 4 * kInt8Panel * 4 + k % 4] = code;
    *sum += code;
  }
}

// What is packed, for each column.
struct Int8Columns {
  float* scales;
  int32_t* sums;
  int8_t* codes;  // of the panels

  Int8Columns(float* packed, int64_t out)
      : scales(packed),
        sums(reinterpret_cast<int32_t*>(packed + PaddedColumns(out))),
        codes(reinterpret_cast<int8_t*>(packed + 2 * PaddedColumns(out))) {}
};

inline void PackInt8(const float* weights, int64_t in, int64_t out,
                     float* packed, float* scratch) {
  __builtin_memset(packed, 0, 4 * Int8PackedFloats(in, out));
  const Int8Columns to(packed, out);
  const int64_t panel_bytes = kInt8Panel * ((in + 3) / 4 * 4);
  const int64_t rotated = in / (kRotated * kLanes) * (kRotated * kLanes);
  for (int64_t o = 0; o < out; ++o) {
    RotateRow<F32>(weights + o * in, in, scratch);
    for (int64_t k = 0; k < rotated; ++k) scratch[k] *= 1.0f / kRotated;
    PackRow(scratch, in,
            to.codes + o / kInt8Panel * panel_bytes + o % kInt8Panel * 4,
            to.scales + o, to.sums + o);
  }
}

// to [width] = function(scales (sum - zero sums) + bias), of one row; the
// columns and bias from the panel's first on.
template <typename E, typename Function>
ENCODERD_INLINE void FinishInt8Row(const Function& function, const float* sum,
                                   RowScale row, const float* scales,
                                   const int32_t* sums, const float* bias,
                                   int64_t width, typename E::Element* to) {
  for (int64_t o = 0; o < width; o += kLanes) {
    const F codes = F32::Load(reinterpret_cast<const float*>(sums) + o);
    const I whole = reinterpret_cast<I>(F32::Load(sum + o)) -
                    row.zero * reinterpret_cast<I>(codes);
    const F y = function(__builtin_convertvector(whole, F) *
                             (F32::Load(scales + o) * row.scale) +
                         F32::Load(bias + o));
    if (width - o >= kLanes) {
      E::Store(y, to + o);
    } else {
      typename E::Element some[kLanes];
      E::Store(y, some);
      __builtin_memcpy(to + o, some, (width - o) * sizeof(some[0]));
    }
  }
}

// Rows of y from `to` on, of the panel that begins with `column`; their sums
// and scales.
template <typename E>
ENCODERD_NOINLINE void FinishInt8Rows(const PackedWeights& weights,
                                      const Int8Columns& columns,
                                      int64_t column, int64_t rows,
                                      const float* tile, const RowScale* scales,
                                      typename E::Element* to) {
  const int64_t left = weights.out - column;
  const int64_t width = left < kInt8Panel ? left : kInt8Panel;
  WithActivation<E>(weights.activation, [&](auto function) {
    for (int64_t r = 0; r < rows; ++r) {
      FinishInt8Row<E>(function, tile + r * kInt8Panel, scales[r],
                       columns.scales + column, columns.sums + column,
                       weights.bias + column, width, to + r * weights.out);
    }
  });
}

template <typename E>
void Int8Product(const PackedWeights& weights, const Matrix& x,
                 const Panels& panels, const Matrix& y, void* scratch) {
  const int64_t in = weights.in, out = weights.out;
  const int64_t bytes = CodeBytes(in), steps = (in + 3) / 4;
  const Int8Columns columns(const_cast<float*>(weights.packed), out);
  auto* const row = static_cast<float*>(scratch);
  auto* const codes = reinterpret_cast<uint8_t*>(row + bytes);
  auto* const scales = reinterpret_cast<RowScale*>(codes + x.rows * bytes);
  QuantizeRows<E>(x.data, x.rows, in, row, codes, scales);
  float tile[kTileRows * kInt8Panel];
  const int64_t end = panels.first + panels.count;
  for (int64_t p = panels.first; p < end; ++p) {
    const int64_t column = p * kInt8Panel;
    const auto* panel =
        reinterpret_cast<const float*>(columns.codes + column * steps * 4);
    Ahead ahead;
    if (x.rows > BlockRows(kPanel) && p + 1 < end) {
      const float* const next = panel + kInt8Panel * steps;
      ahead = {reinterpret_cast<const char*>(next),
               reinterpret_cast<const char*>(next + kInt8Panel * steps)};
    }
    for (int64_t r0 = 0; r0 < x.rows; r0 += kTileRows) {
      const int64_t rows = x.rows - r0 < kTileRows ? x.rows - r0 : kTileRows;
      DotPanel<MultiplyAddInt8>(
          kPanel, rows,
          {reinterpret_cast<const char*>(codes + r0 * bytes), bytes, panel,
           steps, tile, kInt8Panel},
          &ahead);
      FinishInt8Rows<E>(
          weights, columns, column, rows, tile, scales + r0,
          static_cast<typename E::Element*>(y.data) + r0 * out + column);
    }
  }
}

template <typename E>
inline constexpr ProductKernels kInt8Products = {
    kInt8Panel, /*prepare_quarters=*/5, Int8PackedFloats,
    PackInt8,   Int8Product<E>,         Int8ScratchBytes};

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_INT8_KERNEL_H_
