// LayerNorm of a row that a warp holds in registers: what embed_tokens.cu and
// add_layer_norm.cu share.
//
// Lane l holds columns 8l + 256c .. 8l + 256c + 7 for c < kChunks, so that a
// warp reads whole lines; columns past `hidden` count nothing. Sums in float;
// two-pass variance, never E[x^2] - mean^2.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_LAYER_NORM_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_LAYER_NORM_H_

#include "engine/device/cuda/kernels/primitives.h"
#include "engine/device/cuda/kernels/warp.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

constexpr int32_t kRowsPerBlock = 4;  // one warp each
constexpr int32_t kNormThreads = 32 * kRowsPerBlock;
constexpr int32_t kChunkColumns = 256;

// First column of this lane's chunk c.
ENCODERD_DEVICE int32_t ChunkColumn(int32_t c) {
  return c * kChunkColumns + ThreadIndex() % 32 * 8;
}

// How many chunks of a lane hold columns at every width that WithChunks gives
// kChunks: nobody asks whether those are past the end.
template <int kChunks>
constexpr int32_t kFullChunks = kChunks <= 4 ? kChunks - 1 : kChunks / 2;

template <int kChunks>
ENCODERD_DEVICE bool HasChunk(int32_t c, int32_t hidden) {
  return c < kFullChunks<kChunks> || ChunkColumn(c) < hidden;
}

// A lane's share of a row; zeros past `hidden`.
template <int kChunks, typename T>
struct RowOf {
  Vector8<T> chunks[kChunks];
};

// Loads alone, so that a kernel can issue those of all its rows before it
// waits for any.
template <int kChunks, typename T>
ENCODERD_DEVICE RowOf<kChunks, T> LoadRow(const T* row, int32_t hidden) {
  RowOf<kChunks, T> loaded = {};
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kChunks; ++c) {
    if (HasChunk<kChunks>(c, hidden))
      loaded.chunks[c] = LoadVector8(row + ChunkColumn(c));
  }
  return loaded;
}

// values = the row.
template <int kChunks, typename T>
ENCODERD_DEVICE void Widen(const RowOf<kChunks, T>& row,
                           float (&values)[kChunks][8]) {
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kChunks; ++c) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 8; ++i)
      values[c][i] = ToFloat(row.chunks[c].values[i]);
  }
}

// values += the row.
template <int kChunks, typename T>
ENCODERD_DEVICE void AddRow(const RowOf<kChunks, T>& row,
                            float (&values)[kChunks][8]) {
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kChunks; ++c) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 8; ++i)
      values[c][i] += ToFloat(row.chunks[c].values[i]);
  }
}

// The row of values, rounded.
template <typename T, int kChunks>
ENCODERD_DEVICE RowOf<kChunks, T> Narrowed(const float (&values)[kChunks][8]) {
  RowOf<kChunks, T> row;
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kChunks; ++c) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 8; ++i)
      FromFloat(values[c][i], &row.chunks[c].values[i]);
  }
  return row;
}

template <int kChunks, typename T>
ENCODERD_DEVICE void StoreRow(const RowOf<kChunks, T>& row, int32_t hidden,
                              T* y) {
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kChunks; ++c) {
    if (HasChunk<kChunks>(c, hidden))
      StoreVector8(row.chunks[c], y + ChunkColumn(c));
  }
}

// values = LayerNorm(values), which are 0 past `hidden` and then anything. All
// 32 lanes call it.
template <int kChunks>
ENCODERD_DEVICE void NormaliseRow(int32_t hidden, const NormRef& norm,
                                  float (&values)[kChunks][8]) {
  float sum = 0.0f;
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kChunks; ++c) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 8; ++i) sum += values[c][i];  // 0 past hidden
  }
  const float mean = WarpSum(sum) / static_cast<float>(hidden);
  float squares = 0.0f;
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kChunks; ++c) {
    if (!HasChunk<kChunks>(c, hidden)) continue;
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 8; ++i) {
      values[c][i] -= mean;
      squares += values[c][i] * values[c][i];
    }
  }
  const float variance = WarpSum(squares) / static_cast<float>(hidden);
  // The last term is 0, or NaN where the variance overflows, so that the row
  // is no constant that looks like a result.
  const float scale = 1.0f / Sqrt(variance + norm.eps) + 0.0f * variance;
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kChunks; ++c) {
    if (!HasChunk<kChunks>(c, hidden)) continue;
    const Vector8<float> gain = LoadVector8(norm.gain + ChunkColumn(c));
    const Vector8<float> bias = LoadVector8(norm.bias + ChunkColumn(c));
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 8; ++i)
      values[c][i] = values[c][i] * scale * gain.values[i] + bias.values[i];
  }
}

// Calls launch.template operator()<kChunks>() with the least kChunks that
// holds a row of `hidden` columns.
template <typename LaunchWith>
int WithChunks(int64_t hidden, const LaunchWith& launch) {
  if (hidden <= 1 * kChunkColumns) return launch.template operator()<1>();
  if (hidden <= 2 * kChunkColumns) return launch.template operator()<2>();
  if (hidden <= 3 * kChunkColumns) return launch.template operator()<3>();
  if (hidden <= 4 * kChunkColumns) return launch.template operator()<4>();
  if (hidden <= 8 * kChunkColumns) return launch.template operator()<8>();
  return launch.template operator()<kMaxHidden / kChunkColumns>();
}

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_LAYER_NORM_H_
