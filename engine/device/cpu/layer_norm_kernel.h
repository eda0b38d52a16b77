// LayerNorm over rows [rows,H], after an addition:
//   AddLayerNorm: y = LayerNorm(x + residual), or of x alone; the sum is kept
//                 too where it is asked for. y and the sum may be x or
//                 residual, not each other.
//   Embed:        y = LayerNorm(token row + segment row + position row), or
//                 the sum itself.
//
// Sums in float; two-pass variance, never E[x^2] - mean^2. A row whose variance
// overflows becomes NaNs: 1 / sqrt(inf) would make it the norm's bias, and hide
// that its values are lost. The summed row stays in one row of scratch (L1), so
// memory is touched once: 3 H elements a row moved, about 9 H FLOPs.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_LAYER_NORM_KERNEL_H_
#define ENCODERD_ENGINE_DEVICE_CPU_LAYER_NORM_KERNEL_H_

#include "engine/device/cpu/simd.h"
#include "engine/device/ops.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

// y = LayerNorm(row); row's values sum to `sum`.
template <typename E>
ENCODERD_INLINE void NormalizeRow(const float* row, int64_t size, float sum,
                                  const NormRef& norm, typename E::Element* y) {
  const int64_t whole = size / kLanes * kLanes;
  const float mean = sum / static_cast<float>(size);
  F squares = {};
  for (int64_t h = 0; h < whole; h += kLanes) {
    const F d = F32::Load(row + h) - mean;
    squares += d * d;
  }
  float variance = SumLanes(squares);
  for (int64_t h = whole; h < size; ++h) {
    const float d = row[h] - mean;
    variance += d * d;
  }
  variance /= static_cast<float>(size);
  // The last term is 0, or NaN where the variance overflows.
  const float factor =
      1.0f / __builtin_sqrtf(variance + norm.eps) + 0.0f * variance;
  for (int64_t h = 0; h < whole; h += kLanes) {
    const F scaled = (F32::Load(row + h) - mean) * factor;
    E::Store(scaled * F32::Load(norm.gain + h) + F32::Load(norm.bias + h),
             y + h);
  }
  for (int64_t h = whole; h < size; ++h)
    E::StoreOne((row[h] - mean) * factor * norm.gain[h] + norm.bias[h], y + h);
}

// row = a + b in float, or a where b is null; kept in `kept` too unless that is
// null. Returns what the row's values sum to.
template <typename E>
ENCODERD_INLINE float AddRow(const typename E::Element* a,
                             const typename E::Element* b, int64_t size,
                             float* row, typename E::Element* kept) {
  const int64_t whole = size / kLanes * kLanes;
  F sums = {};
  for (int64_t h = 0; h < whole; h += kLanes) {
    F v = E::Load(a + h);
    if (b != nullptr) v += E::Load(b + h);
    F32::Store(v, row + h);
    if (kept != nullptr) E::Store(v, kept + h);
    sums += v;
  }
  float sum = SumLanes(sums);
  for (int64_t h = whole; h < size; ++h) {
    row[h] = E::LoadOne(a + h);
    if (b != nullptr) row[h] += E::LoadOne(b + h);
    if (kept != nullptr) E::StoreOne(row[h], kept + h);
    sum += row[h];
  }
  return sum;
}

template <typename E>
void AddLayerNorm(const AddNormOp& op, void* scratch) {
  using Element = typename E::Element;
  const int64_t size = op.x.cols;
  const auto row_of = [size](const Matrix& matrix, int64_t r) {
    auto* const data = static_cast<Element*>(matrix.data);
    return data == nullptr ? nullptr : data + r * size;
  };
  float* const row = static_cast<float*>(scratch);
  for (int64_t r = 0; r < op.x.rows; ++r) {
    const float sum = AddRow<E>(row_of(op.x, r), row_of(op.residual, r), size,
                                row, row_of(op.sum, r));
    NormalizeRow<E>(row, size, sum, op.norm, row_of(op.y, r));
  }
}

template <typename E>
ENCODERD_INLINE void CopyRow(const float* row, int64_t size,
                             typename E::Element* y) {
  const int64_t whole = size / kLanes * kLanes;
  for (int64_t h = 0; h < whole; h += kLanes)
    E::Store(F32::Load(row + h), y + h);
  for (int64_t h = whole; h < size; ++h) E::StoreOne(row[h], y + h);
}

// Of tables of T, whose values the sums take as floats (exact).
template <typename E, typename T>
void EmbedFrom(const EmbedOp& op, void* scratch) {
  using Element = typename T::Element;
  const int64_t size = op.out.cols, whole = size / kLanes * kLanes;
  float* const row = static_cast<float*>(scratch);
  const auto row_of = [size](const void* table, int32_t id) {
    return static_cast<const Element*>(table) + id * size;
  };
  for (int64_t r = 0; r < op.out.rows; ++r) {
    const Element* token = row_of(op.tables.token, op.batch.token_ids[r]);
    const Element* position = nullptr;
    const Element* segment = nullptr;
    if (op.tables.position != nullptr)
      position = row_of(op.tables.position, op.batch.position_ids[r]);
    if (op.tables.segment != nullptr)
      segment = row_of(op.tables.segment, op.batch.segment_ids[r]);
    F sums = {};
    for (int64_t h = 0; h < whole; h += kLanes) {
      F v = T::Load(token + h);
      if (segment != nullptr) v += T::Load(segment + h);
      if (position != nullptr) v += T::Load(position + h);
      F32::Store(v, row + h);
      sums += v;
    }
    float sum = SumLanes(sums);
    for (int64_t h = whole; h < size; ++h) {
      row[h] = T::LoadOne(token + h);
      if (segment != nullptr) row[h] += T::LoadOne(segment + h);
      if (position != nullptr) row[h] += T::LoadOne(position + h);
      sum += row[h];
    }
    auto* y = static_cast<typename E::Element*>(op.out.data) + r * size;
    if (op.norm.gain == nullptr) {
      CopyRow<E>(row, size, y);
    } else {
      NormalizeRow<E>(row, size, sum, op.norm, y);
    }
  }
}

template <typename E>
void Embed(const EmbedOp& op, void* scratch) {
  switch (op.tables.dtype) {
    case DType::kF32:
      return EmbedFrom<E, F32>(op, scratch);
    case DType::kBF16:
      return EmbedFrom<E, BF16>(op, scratch);
    case DType::kF16:
      return EmbedFrom<E, F16>(op, scratch);
  }
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_LAYER_NORM_KERNEL_H_
