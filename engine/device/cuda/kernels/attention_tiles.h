// What the attention kernels for 16-bit elements share: tiles in shared memory,
// scores, softmax and the weighted sum in the fragments of mma.m16n8k16. A warp
// has 16 queries; keys come in groups of 16. T is Half or Bf16, kD the head
// size rounded up to 32, 64 or 128.
//
// A tile's rows have kD elements in 16-byte chunks, a row's chunks exchanged by
// its number so that eight rows of one column lie in different banks (Place).
//
// Numbers: products are summed in float. Softmax is float, base 2; an exponent
// is one fused multiply-add of score, scale and minus the row's largest. Sums
// are of the probabilities before they are rounded to T for the weighted sum.
// A row is multiplied by one reciprocal of its sum and rounded once.
//
// A bounded reach lowers scores of keys beyond it to -infinity before softmax.
// That is a separate form (Form), so that the others are not affected.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ATTENTION_TILES_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ATTENTION_TILES_H_

#include <cmath>

#include "engine/device/cuda/kernels/attention_kernels.h"
#include "engine/device/cuda/kernels/primitives.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

template <typename T>
struct AttentionParameters {
  const T* qkv;
  const AttentionWork* work;
  int32_t heads;
  int32_t head_size;
  float scale;        // log2(e) / sqrt(D)
  float bias_scale;   // sqrt(D)
  const float* bias;  // and its stride: as in AttentionOp
  int32_t bias_stride;
  T* context;
  Reach reach;
};

template <typename T>
AttentionParameters<T> ParametersOf(const AttentionOp& op) {
  const float root = std::sqrt(static_cast<float>(op.head_size));
  AttentionParameters<T> all;
  all.qkv = static_cast<const T*>(op.qkv.data);
  all.work = op.work;
  all.heads = op.heads;
  all.head_size = op.head_size;
  all.scale = 1.44269504088896341f / root;
  all.bias_scale = root;
  all.bias = op.bias;
  all.bias_stride = op.bias_stride;
  all.context = static_cast<T*>(op.context.data);
  all.reach = op.reach;
  return all;
}

// One sequence's rows of one head.
template <typename T>
struct Head {
  const T* q;      // K and V follow `hidden` and 2 `hidden` elements further
  int64_t hidden;  // a row of qkv has three times as many
  int32_t length;
  int32_t head_size;
  const float* bias;  // at distance 0
  float scale;
  float bias_scale;
  T* context;
  // Of kReached alone.
  bool biased;
  Reach reach;
};

template <typename T>
ENCODERD_DEVICE Head<T> HeadOf(const AttentionParameters<T>& all,
                               const AttentionWork& work, int32_t head) {
  const int64_t hidden = static_cast<int64_t>(all.heads) * all.head_size;
  const int32_t column = head * all.head_size;
  return {all.qkv + work.first * 3 * hidden + column,
          hidden,
          work.length,
          all.head_size,
          all.bias + head * all.bias_stride,
          all.scale,
          all.bias_scale,
          all.context + work.first * hidden + column,
          all.bias != nullptr,
          all.reach};
}

// Elements from a tile's start to `column`, a multiple of 8, of `row`. For
// multiples of 16 rows and columns further on: Place + rows kD, Place ^ columns
// (the exchange is the same 8 rows on, and xor moves chunks as it does).
template <int kD>
ENCODERD_DEVICE int32_t Place(int32_t row, int32_t column) {
  const int32_t exchange = kD == 32 ? row / 2 % 4 : row % 8;
  return row * kD + ((column / 8) ^ exchange) * 8;
}

// Starts this thread's share, as number `thread` of kThreads, of copying kRows
// rows, from `row` on, of a sequence's matrix to a tile. Rows past the sequence
// and columns past the head are zeros.
template <typename T, int kD, int kRows, int kThreads>
ENCODERD_DEVICE void LoadTile(const T* matrix, const Head<T>& head, int32_t row,
                              int32_t thread, T* tile) {
  constexpr int32_t kChunks = kD / 8;
  constexpr int32_t kStep = kThreads / kChunks;  // rows
  static_assert(kThreads % kChunks == 0 && kRows % kStep == 0,
                "each thread copies as many");
  const int32_t first = thread / kChunks;
  const int32_t column = thread % kChunks * 8;
  const int32_t rows = head.length - row - first;
  const int32_t valid = column < head.head_size ? rows : 0;
  const int64_t stride = 3 * head.hidden;
  // Past the matrix where nothing is valid: not read then.
  const T* from = matrix + (row + first) * stride + column;
  ENCODERD_UNROLL
  for (int32_t r = 0; r < kRows; r += kStep) {
    CopyAsync16(tile + Place<kD>(first + r, column), from, r < valid);
    from += kStep * stride;
  }
}

template <typename T>
ENCODERD_DEVICE uint32_t Pack(float low, float high) {
  T first, second;
  FromFloat(low, &first);
  FromFloat(high, &second);
  return first.bits | static_cast<uint32_t>(second.bits) << 16;
}

// What scores of the warp's queries from first_query on and keys from `key` on
// begin with: nothing, or the biases times sqrt(D), which the scale will divide
// by. Past the sequence's end none is read.
template <typename T, Form kForm, int kGroups>
ENCODERD_DEVICE void Begin(const Head<T>& head, int32_t first_query,
                           int32_t key, float (&scores)[2 * kGroups][4]) {
  const int32_t lane = ThreadIndex() % 32;
  const bool biased =
      kForm == Form::kBiased || (kForm == Form::kReached && head.biased);
  ENCODERD_UNROLL
  for (int32_t g = 0; g < 2 * kGroups; ++g) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t q = first_query + lane / 4 + i / 2 * 8;
      const int32_t k = key + g * 8 + lane % 4 * 2 + i % 2;
      scores[g][i] = biased && q < head.length && k < head.length
                         ? head.bias[k - q] * head.bias_scale
                         : 0.0f;
    }
  }
}

// scores [16 queries, 16 kGroups keys] += Q K^T of a warp, in accumulator
// fragments of 8 keys: lane l holds queries l/4 (values 0, 1) and l/4 + 8 (2,
// 3), keys 2(l%4) and the next. queries: the warp's rows of their tile.
template <typename T, int kD, int kGroups>
ENCODERD_DEVICE void Scores(const T* queries, const T* keys,
                            float (&scores)[2 * kGroups][4]) {
  const int32_t lane = ThreadIndex() % 32;
  const int32_t query = Place<kD>(lane % 16, lane / 16 * 8);
  const int32_t key = Place<kD>(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8);
  ENCODERD_UNROLL
  for (int32_t d = 0; d < kD; d += 16) {
    uint32_t a[4];
    LoadMatrix4(queries + (query ^ d), a);
    ENCODERD_UNROLL
    for (int32_t g = 0; g < kGroups; ++g) {
      uint32_t b[4];
      LoadMatrix4(keys + (key ^ d) + g * 16 * kD, b);
      MultiplyAdd(scores[2 * g], a, b[0], b[1], T());
      MultiplyAdd(scores[2 * g + 1], a, b[2], b[3], T());
    }
  }
}

// The keys past the sequence, all in the last group, shall count nothing.
// left: keys of the sequence from the first group's on.
template <int kGroups>
ENCODERD_DEVICE void MaskLastGroup(int32_t left,
                                   float (&scores)[2 * kGroups][4]) {
  const int32_t first_key = ThreadIndex() % 4 * 2;
  ENCODERD_UNROLL
  for (int32_t g = 2 * kGroups - 2; g < 2 * kGroups; ++g) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      if (g * 8 + first_key + i % 2 >= left) scores[g][i] = -Infinity();
    }
  }
}

// Keys from `key` on that the warp's queries do not see shall count nothing.
// Most tiles of a long reach are seen as a whole: no score is looked at.
template <typename T, int kGroups>
ENCODERD_DEVICE void MaskBeyondReach(const Head<T>& head, int32_t first_query,
                                     int32_t key,
                                     float (&scores)[2 * kGroups][4]) {
  const Reach reach = head.reach;
  const int32_t most_left = first_query + 15 - key;  // of any pair
  const int32_t most_right = key + 16 * kGroups - 1 - first_query;
  const bool cut_left = reach.left >= 0 && most_left > reach.left;
  const bool cut_right = reach.right >= 0 && most_right > reach.right;
  if (!cut_left && !cut_right) return;  // the whole warp
  const int32_t lane = ThreadIndex() % 32;
  // Distances j - i that are seen, from a lane's first query and key.
  const int32_t first = key + lane % 4 * 2 - (first_query + lane / 4);
  const int32_t least = cut_left ? -reach.left : INT32_MIN;
  const int32_t most = cut_right ? reach.right : INT32_MAX;
  ENCODERD_UNROLL
  for (int32_t g = 0; g < 2 * kGroups; ++g) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t distance = first + g * 8 + i % 2 - i / 2 * 8;
      if (distance < least || distance > most) scores[g][i] = -Infinity();
    }
  }
}

// max: of both queries that a lane has a share of, with what it was before.
template <int kGroups>
ENCODERD_DEVICE void RowMax(const float (&scores)[2 * kGroups][4],
                            float (&max)[2]) {
  ENCODERD_UNROLL
  for (int32_t g = 0; g < 2 * kGroups; ++g) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 4; ++i) max[i / 2] = Max(max[i / 2], scores[g][i]);
  }
  ENCODERD_UNROLL
  for (int32_t q = 0; q < 2; ++q) {
    max[q] = Max(max[q], ShuffleXor(max[q], 1));
    max[q] = Max(max[q], ShuffleXor(max[q], 2));
  }
}

// probabilities = 2^(scores * scale - shift), rounded to T, as the fragments
// that AddValues multiplies; adds this lane's, not rounded, to the sums.
template <typename T, int kGroups>
ENCODERD_DEVICE void Exponentials(float scale, const float (&shift)[2],
                                  const float (&scores)[2 * kGroups][4],
                                  float (&sum)[2],
                                  uint32_t (&probabilities)[kGroups][4]) {
  ENCODERD_UNROLL
  for (int32_t g = 0; g < 2 * kGroups; ++g) {
    float values[4];
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      values[i] = Exp2(FusedMultiplyAdd(scores[g][i], scale, -shift[i / 2]));
      sum[i / 2] += values[i];
    }
    probabilities[g / 2][g % 2 * 2] = Pack<T>(values[0], values[1]);
    probabilities[g / 2][g % 2 * 2 + 1] = Pack<T>(values[2], values[3]);
  }
}

// out [16,kD] += probabilities [16, 16 kGroups] values [16 kGroups, kD].
template <typename T, int kD, int kGroups>
ENCODERD_DEVICE void AddValues(const uint32_t (&probabilities)[kGroups][4],
                               const T* values, float (&out)[kD / 8][4]) {
  const int32_t lane = ThreadIndex() % 32;
  const int32_t value = Place<kD>(lane % 16, lane / 16 * 8);
  ENCODERD_UNROLL
  for (int32_t g = 0; g < kGroups; ++g) {
    ENCODERD_UNROLL
    for (int32_t d = 0; d < kD; d += 16) {
      uint32_t b[4];
      LoadMatrix4Transposed(values + (value ^ d) + g * 16 * kD, b);
      MultiplyAdd(out[d / 8], probabilities[g], b[0], b[1], T());
      MultiplyAdd(out[d / 8 + 1], probabilities[g], b[2], b[3], T());
    }
  }
}

// context = out / sums, of the warp's queries from first_query on, through
// `rows` [16,kD]: its part of the tile of queries, which nobody needs any more.
template <typename T, int kD>
ENCODERD_DEVICE void StoreContext(const Head<T>& head, int32_t first_query,
                                  const float (&out)[kD / 8][4],
                                  const float (&sums)[2], T* rows) {
  const int32_t lane = ThreadIndex() % 32;
  const int32_t place = Place<kD>(lane / 4, 0) + lane % 4 * 2;
  WarpBarrier();  // every lane has read the queries
  ENCODERD_UNROLL
  for (int32_t q = 0; q < 2; ++q) {
    float sum = sums[q];
    sum += ShuffleXor(sum, 1);
    sum += ShuffleXor(sum, 2);
    const float part = 1.0f / sum;
    ENCODERD_UNROLL
    for (int32_t d = 0; d < kD; d += 8) {
      StoreWord(Pack<T>(out[d / 8][2 * q] * part, out[d / 8][2 * q + 1] * part),
                rows + (place ^ d) + q * 8 * kD);
    }
  }
  WarpBarrier();  // the rows are there
  constexpr int32_t kChunks = kD / 8;
  ENCODERD_UNROLL
  for (int32_t i = 0; i < 16 * kChunks / 32; ++i) {
    const int32_t r = (i * 32 + lane) / kChunks;
    const int32_t column = (i * 32 + lane) % kChunks * 8;
    if (first_query + r >= head.length || column >= head.head_size) continue;
    StoreVector8(LoadVector8(rows + Place<kD>(r, column)),
                 head.context + (first_query + r) * head.hidden + column);
  }
}

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ATTENTION_TILES_H_
