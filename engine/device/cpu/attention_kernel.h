// Self-attention of one sequence: context [n,H] = softmax(Q K^T / sqrt(D) + b)
// V for every head; qkv [n,3H] as Q|K|V; b, where there is one, depends on head
// and distance alone, so one row of 2n - 1 values a head holds it.
//
// For each head K is packed transposed, [D words][keys], and V as [key
// words][D], both in panels that the inner loop (dot.h) reads straight
// through; short sequences keep them in L1, 512 keys in L2. kGroup query rows
// at a time: all their scores (the whole row, no online softmax), exp, product
// with V, division by the row's sum. bf16: the products take pairs of bf16,
// scores and sums are float, probabilities are rounded to bf16.
//
// 4 n^2 D FLOPs a head for (3 + 1) n D elements read and written; n^2 exps.
// Blocking depends on n only, so a sequence's bits do not depend on its
// company. A run for some of the query rows packs and reads only the keys that
// they see, and gives them the bits of a run for all. It is fastest with whole
// groups.
//
// Under a limited reach a group of query rows reads only the panels of keys
// that any of it sees, from the first on: of a window of w keys a row costs
// about (w + kGroup) D, whatever n is. A row's maximum, sum and exps are of the
// keys that it sees; the probabilities of the others that its group reads are
// zeros, which change no bit of its context where their values are finite.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_ATTENTION_KERNEL_H_
#define ENCODERD_ENGINE_DEVICE_CPU_ATTENTION_KERNEL_H_

#include "engine/device/cpu/dot.h"
#include "engine/device/cpu/pack_rows.h"
#include "engine/device/cpu/simd.h"
#include "engine/device/cpu/vector_math.h"
#include "engine/device/ops.h"

namespace encoderd {
namespace cpu {
namespace ENCODERD_ISA {

constexpr int64_t kGroup = 24;  // query rows at a time
// Of keys that do not count.
constexpr float kLeastScore = -3.0e38f;
constexpr float kMostOffset = 1 << 20;

struct KeyRange {
  int64_t first, end;
};

// The keys that any of query rows first .. first + rows - 1 sees; of one row,
// all of them.
ENCODERD_INLINE KeyRange KeysSeen(const Reach& reach, int64_t first,
                                  int64_t rows, int64_t n) {
  KeyRange seen = {0, n};
  if (reach.left >= 0 && first > reach.left) seen.first = first - reach.left;
  const int64_t end = first + rows + reach.right;
  if (reach.right >= 0 && end < n) seen.end = end;
  return seen;
}

// The whole panels that hold these keys, of n.
ENCODERD_INLINE KeyRange PanelsOf(const KeyRange& keys, int64_t n) {
  constexpr int64_t kKeys = kPanel * kLanes;
  const int64_t end = (keys.end + kKeys - 1) / kKeys * kKeys;
  return {keys.first / kKeys * kKeys, end < n ? end : n};
}

// The most vectors of scores that a group keeps for one row: its keys, and the
// rest of the panels at both ends.
ENCODERD_INLINE int64_t ScoreVectors(const Reach& reach, int64_t n) {
  const int64_t all = Vectors(n);
  if (reach.left < 0 || reach.right < 0) return all;
  const int64_t some =
      Vectors(int64_t{reach.left} + reach.right + kGroup) + 2 * kPanel;
  return some < all ? some : all;
}

// Sizes and places of the scratch memory, in floats.
template <typename E, typename Op>
struct AttentionScratch {
  int64_t key_vectors, value_vectors, score_stride;
  int64_t keys, values, scores, out, queries, total;

  AttentionScratch(int64_t n, int64_t head_size, const Reach& reach)
      : key_vectors(Vectors(n)),
        value_vectors(Vectors(head_size)),
        // Off a power of two, which would put all rows into few cache sets.
        score_stride(ScoreVectors(reach, n) * kLanes + 16) {
    keys = 0;
    values = keys + Words<E>(head_size) * key_vectors * kLanes;
    scores = values + Words<E>(n) * value_vectors * kLanes;
    out = scores + kGroup * score_stride;
    queries = out + kGroup * value_vectors * kLanes;
    total = queries;
    if (kWidens<E, Op>)
      total += kGroup * Words<E>(head_size) * Op::kLeftBytes / 4;
  }
};

template <typename E, typename Op>
int64_t AttentionScratchBytes(int64_t max_seqlen, int64_t head_size) {
  return AttentionScratch<E, Op>(max_seqlen, head_size, Reach()).total * 4;
}

// One vector of V words: floats of row0, or pairs (row0, row1); row1 may be
// null: zeros. `count` elements, the rest zeros.
template <typename E>
ENCODERD_INLINE void PackValueVector(const typename E::Element* row0,
                                     const typename E::Element* row1,
                                     int64_t count, float* to) {
  if constexpr (sizeof(typename E::Element) == 4) {
    if (count >= kLanes) return F32::Store(F32::Load(row0), to);
    for (int64_t i = 0; i < kLanes; ++i) to[i] = i < count ? row0[i] : 0.0f;
  } else {
    if (count >= kLanes && row1 != nullptr) {
      const U low = __builtin_convertvector(
          static_cast<H>(*reinterpret_cast<const HAny*>(row0)), U);
      const U high = __builtin_convertvector(
          static_cast<H>(*reinterpret_cast<const HAny*>(row1)), U);
      *reinterpret_cast<UAny*>(to) = low | (high << 16);
      return;
    }
    for (int64_t i = 0; i < kLanes; ++i) {
      uint32_t word = 0;
      if (i < count) {
        word = row0[i];
        if (row1 != nullptr) word |= static_cast<uint32_t>(row1[i]) << 16;
      }
      __builtin_memcpy(to + i, &word, sizeof(word));
    }
  }
}

// V rows (stride in elements) to panels [key words][vectors * kLanes].
template <typename E>
inline void PackValues(const typename E::Element* values, int64_t stride,
                       int64_t n, int64_t head_size, float* packed) {
  constexpr int64_t kRows = 4 / sizeof(typename E::Element);  // in one word
  const int64_t vectors = Vectors(head_size), words = Words<E>(n);
  for (int64_t panel = 0; panel < vectors; panel += kPanel) {
    const int64_t width = vectors - panel < kPanel ? vectors - panel : kPanel;
    float* to = packed + panel * words * kLanes;
    for (int64_t w = 0; w < words; ++w) {
      const typename E::Element* row = values + w * kRows * stride;
      const bool pair = kRows == 2 && w * kRows + 1 < n;
      for (int64_t v = 0; v < width; ++v, to += kLanes) {
        const int64_t at = (panel + v) * kLanes;
        PackValueVector<E>(row + at, pair ? row + stride + at : nullptr,
                           head_size - at, to);
      }
    }
  }
}

// scores [vectors * kLanes] += bias * factor, before they are scaled.
ENCODERD_INLINE void AddBias(const float* bias, int64_t vectors, float factor,
                             float* scores) {
  for (int64_t v = 0; v < vectors; ++v) {
    F32::Store(
        F32::Load(scores + v * kLanes) + F32::Load(bias + v * kLanes) * factor,
        scores + v * kLanes);
  }
}

// Scores [vectors * kLanes], of which the first n count, become probabilities
// times the returned sum: elements E from `out` on, which may be the scores'
// own memory or begin before it. Sum and maximum in float.
template <typename E>
ENCODERD_INLINE float SoftmaxRow(const float* scores, int64_t n,
                                 int64_t vectors, float scale,
                                 typename E::Element* out) {
  const int64_t whole = vectors - 1, rest = n - whole * kLanes;
  // Scores past the end count as the least float.
  const F last =
      FirstLanes(F32::Load(scores + whole * kLanes), rest, Splat(kLeastScore));
  F highest = last;
  for (int64_t v = 0; v < whole; ++v)
    highest = Max(highest, F32::Load(scores + v * kLanes));
  const float to_base2 = scale * kLog2e;
  F shift = {}, offset = MaxInLanes(highest) * to_base2;
  // So far from 0 the offset is rounded to more than the exponents that count.
  if (__builtin_fabsf(offset[0]) > kMostOffset) {
    shift = MaxInLanes(highest);
    offset = F{};
  }
  F sum = {};
  for (int64_t v = 0; v < whole; ++v) {
    const F p = Exp2<E::kPrecise>(
        (F32::Load(scores + v * kLanes) - shift) * to_base2 - offset);
    sum += p;
    E::Store(p, out + v * kLanes);
  }
  const F p = FirstLanes(Exp2<E::kPrecise>((last - shift) * to_base2 - offset),
                         rest, F{});
  E::Store(p, out + whole * kLanes);
  return SumLanes(sum + p);
}

// SoftmaxRow of the scores of keys seen.first .. seen.end - 1 in a row of
// [vectors * kLanes], in place; zeros for the others.
template <typename E>
ENCODERD_INLINE float SoftmaxSeen(float* scores, KeyRange seen, int64_t vectors,
                                  float scale) {
  auto* const out = reinterpret_cast<typename E::Element*>(scores);
  const int64_t start = seen.first / kLanes * kLanes;
  if (seen.first > start) {
    float* const edge = scores + start;
    F32::Store(
        FirstLanes(Splat(kLeastScore), seen.first - start, F32::Load(edge)),
        edge);
  }
  const int64_t count = seen.end - start, used = Vectors(count);
  const float sum =
      SoftmaxRow<E>(scores + start, count, used, scale, out + start);
  const int64_t end = start + used * kLanes;
  for (int64_t key = 0; key < start; key += kLanes) E::Store(F{}, out + key);
  for (int64_t key = start; key < seen.first; ++key) E::StoreOne(0, out + key);
  for (int64_t key = end; key < vectors * kLanes; key += kLanes)
    E::Store(F{}, out + key);
  return sum;
}

// The softmax of a group's rows, in place, whose scores begin with those of
// first_key; sums [rows].
template <typename E>
ENCODERD_NOINLINE void SoftmaxGroup(const Reach& reach, int64_t first,
                                    int64_t rows, int64_t n, int64_t first_key,
                                    int64_t vectors, float scale, float* scores,
                                    int64_t stride, float* sums) {
  if (reach.left < 0 && reach.right < 0) {
    for (int64_t r = 0; r < rows; ++r, scores += stride) {
      sums[r] = SoftmaxRow<E>(scores, n, vectors, scale,
                              reinterpret_cast<typename E::Element*>(scores));
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r, scores += stride) {
    KeyRange seen = KeysSeen(reach, first + r, 1, n);
    seen.first -= first_key;
    seen.end -= first_key;
    sums[r] = SoftmaxSeen<E>(scores, seen, vectors, scale);
  }
}

// context [rows,H] = out / sums, of one head.
template <typename E>
ENCODERD_INLINE void StoreContext(const float* out, int64_t out_stride,
                                  const float* sums, int64_t rows, int64_t size,
                                  typename E::Element* context,
                                  int64_t hidden) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = out + r * out_stride;
    const float factor = 1.0f / sums[r];
    int64_t d = 0;
    for (; d + kLanes <= size; d += kLanes)
      E::Store(F32::Load(row + d) * factor, context + r * hidden + d);
    for (; d < size; ++d)
      E::StoreOne(row[d] * factor, context + r * hidden + d);
  }
}

template <typename E, typename Op>
void Attention(const AttentionOp& op, void* scratch_memory) {
  using Element = typename E::Element;
  const int64_t n = op.qkv.rows, size = op.head_size;
  const int64_t hidden = op.heads * size, stride = 3 * hidden;
  const AttentionScratch<E, Op> at(n, size, op.reach);
  float* const scratch = static_cast<float*>(scratch_memory);
  float* const keys = scratch + at.keys;
  float* const values = scratch + at.values;
  float* const scores = scratch + at.scores;
  float* const out = scratch + at.out;
  float* const queries = scratch + at.queries;
  const int64_t out_stride = at.value_vectors * kLanes;
  const int64_t words = Words<E>(size);
  const float root = __builtin_sqrtf(static_cast<float>(size));
  const float scale = 1.0f / root;
  Ahead ahead;  // nothing: all of a head lies near

  const int64_t end_head =
      op.head_count == 0 ? op.heads : op.first_head + op.head_count;
  const int64_t end_query =
      op.query_count == 0 ? n : op.first_query + op.query_count;
  const KeyRange packed = PanelsOf(
      KeysSeen(op.reach, op.first_query, end_query - op.first_query, n), n);
  const int64_t packed_keys = packed.end - packed.first;
  const int64_t key_vectors = Vectors(packed_keys);
  const int64_t key_words = Words<E>(packed_keys);
  for (int64_t head = op.first_head; head < end_head; ++head) {
    const Element* q = static_cast<const Element*>(op.qkv.data) + head * size;
    const Element* k = q + packed.first * stride + hidden;
    PackRows<E, kPanel>(k, stride, packed_keys, size, keys);
    PackValues<E>(k + hidden, stride, packed_keys, size, values);
    for (int64_t first = op.first_query; first < end_query; first += kGroup) {
      const int64_t left = end_query - first;
      const int64_t rows = left < kGroup ? left : kGroup;
      const KeyRange seen = KeysSeen(op.reach, first, rows, n);
      const int64_t first_key = PanelsOf(seen, n).first;  // of the scores
      const int64_t start = (first_key - packed.first) / kLanes;
      const int64_t end = Vectors(seen.end - packed.first);
      const LeftRows group =
          TakeLeftRows<E, Op>(q + first * stride, stride, rows, size, queries);
      for (int64_t v = start; v < end; v += kPanel) {
        const int64_t width =
            key_vectors - v < kPanel ? key_vectors - v : kPanel;
        DotPanel<Op>(width, rows,
                     {group.at, group.stride_bytes, keys + v * words * kLanes,
                      words, scores + (v - start) * kLanes, at.score_stride},
                     &ahead);
      }
      if (op.bias != nullptr) {
        const float* bias = op.bias + head * op.bias_stride - first + first_key;
        for (int64_t r = 0; r < rows; ++r) {
          AddBias(bias - r, end - start, root, scores + r * at.score_stride);
        }
      }
      float sums[kGroup];
      SoftmaxGroup<typename Op::Left>(op.reach, first, rows, n, first_key,
                                      end - start, scale, scores,
                                      at.score_stride, sums);
      for (int64_t v = 0; v < at.value_vectors; v += kPanel) {
        const int64_t width =
            at.value_vectors - v < kPanel ? at.value_vectors - v : kPanel;
        DotPanel<Op>(
            width, rows,
            {reinterpret_cast<const char*>(scores), at.score_stride * 4,
             values +
                 (v * key_words + Words<E>(first_key - packed.first) * width) *
                     kLanes,
             Words<E>(seen.end - first_key), out + v * kLanes, out_stride},
            &ahead);
      }
      StoreContext<E>(out, out_stride, sums, rows, size,
                      static_cast<Element*>(op.context.data) +
                          (first - op.first_query) * hidden + head * size,
                      hidden);
    }
  }
}

}  // namespace ENCODERD_ISA
}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_ATTENTION_KERNEL_H_
