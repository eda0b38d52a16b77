// context [T,H] = softmax(Q K^T / sqrt(D) + bias) V for each sequence and head,
// on tensor cores, for 16-bit elements; attention_float.cu has float.
//
// A block of four warps takes 64 queries of one sequence and head, a warp 16 of
// them; keys and values pass through shared memory 64 at a time, each loading
// while the other is computed with. Nothing is padded in memory: rows past the
// sequence and columns past D arrive as zeros. Softmax is running, in float,
// base 2; its order depends on the sequence's own length only. Bytes moved: Q
// and context once, K and V once for each 64 queries, and where there is a bias
// four bytes for each score, which lie in the caches.
//
// Shared memory holds rows of kD elements in 16-byte chunks, a row's chunks
// exchanged by its number so that eight rows of one column lie in different
// banks (SwizzledChunk).
#include "engine/device/cuda/attention_kernels.h"
#include "engine/device/cuda/ops.h"
#include "engine/device/cuda/primitives.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kWarps = 4;
constexpr int32_t kThreads = 32 * kWarps;
constexpr int32_t kQueries = 16 * kWarps;
constexpr int32_t kKeys = 64;
static_assert(kQueries == AttentionQueries(Element::kHalf), "see ops.h");
static_assert(kQueries == kKeys, "one LoadTile for both");

template <int kD>
ENCODERD_DEVICE int32_t SwizzledChunk(int32_t row, int32_t chunk) {
  return kD == 32 ? chunk ^ (row / 2 % 4) : chunk ^ (row % 8);
}

// Where elements column .. column+7 of a tile's row lie; column a multiple of
// 8.
template <typename T, int kD>
ENCODERD_DEVICE T* TileAt(T* tile, int32_t row, int32_t column) {
  return tile + row * kD + SwizzledChunk<kD>(row, column / 8) * 8;
}

// Starts copying rows row .. row+63 of a sequence's matrix.
template <typename T, int kD>
ENCODERD_DEVICE void LoadTile(const T* matrix, int64_t stride, int32_t row,
                              int32_t length, int32_t head_size, T* tile) {
  constexpr int32_t kChunks = kD / 8;
  ENCODERD_UNROLL
  for (int32_t i = 0; i < kKeys * kChunks / kThreads; ++i) {
    const int32_t at = i * kThreads + ThreadIndex();
    const int32_t r = at / kChunks;
    const int32_t column = at % kChunks * 8;
    const bool valid = row + r < length && column < head_size;
    const T* from = valid ? matrix + (row + r) * stride + column : matrix;
    CopyAsync16(TileAt<T, kD>(tile, r, column), from, valid);
  }
}

template <typename T>
ENCODERD_DEVICE uint32_t Pack(float low, float high) {
  T first, second;
  FromFloat(low, &first);
  FromFloat(high, &second);
  return first.bits | static_cast<uint32_t>(second.bits) << 16;
}

// scores [16 queries, 64 keys] of a warp, in accumulator fragments of 8 keys:
// lane l holds queries l/4 (values 0, 1) and l/4 + 8 (2, 3), keys 2(l%4) and
// the next. `groups` of 16 keys are computed, the rest left alone.
template <typename T, int kD>
ENCODERD_DEVICE void Scores(T* queries, T* keys, int32_t groups,
                            float (&scores)[8][4]) {
  const int32_t lane = ThreadIndex() % 32;
  const int32_t first_query = ThreadIndex() / 32 * 16;
  const int32_t matrix = lane / 8, row = lane % 8;
  ENCODERD_UNROLL
  for (int32_t step = 0; step < kD / 16; ++step) {
    uint32_t a[4];
    LoadMatrix4(TileAt<T, kD>(queries, first_query + matrix % 2 * 8 + row,
                              step * 16 + matrix / 2 * 8),
                a);
    ENCODERD_UNROLL
    for (int32_t g = 0; g < 4; ++g) {
      if (g >= groups) continue;  // the whole block
      uint32_t b[4];
      LoadMatrix4(TileAt<T, kD>(keys, g * 16 + matrix / 2 * 8 + row,
                                step * 16 + matrix % 2 * 8),
                  b);
      MultiplyAdd(scores[2 * g], a, b[0], b[1], T());
      MultiplyAdd(scores[2 * g + 1], a, b[2], b[3], T());
    }
  }
}

// out [16,kD] += probabilities [16,64] values [64,kD].
template <typename T, int kD>
ENCODERD_DEVICE void AddValues(const float (&probabilities)[8][4], T* values,
                               int32_t groups, float (&out)[kD / 8][4]) {
  const int32_t lane = ThreadIndex() % 32;
  const int32_t matrix = lane / 8, row = lane % 8;
  ENCODERD_UNROLL
  for (int32_t g = 0; g < 4; ++g) {
    if (g >= groups) continue;  // the whole block
    const float(&low)[4] = probabilities[2 * g];
    const float(&high)[4] = probabilities[2 * g + 1];
    const uint32_t a[4] = {Pack<T>(low[0], low[1]), Pack<T>(low[2], low[3]),
                           Pack<T>(high[0], high[1]),
                           Pack<T>(high[2], high[3])};
    ENCODERD_UNROLL
    for (int32_t d = 0; d < kD / 16; ++d) {
      uint32_t b[4];
      LoadMatrix4Transposed(TileAt<T, kD>(values, g * 16 + matrix % 2 * 8 + row,
                                          d * 16 + matrix / 2 * 8),
                            b);
      MultiplyAdd(out[2 * d], a, b[0], b[1], T());
      MultiplyAdd(out[2 * d + 1], a, b[2], b[3], T());
    }
  }
}

// This lane's scores, brought to base 2, with their biases; for a warp's
// queries first_query .. and the block's keys key .. . bias: as in
// AttentionArgs, of the head. Past the sequence's end nothing is read.
ENCODERD_DEVICE void AddBias(const float* bias, int32_t first_query,
                             int32_t key, int32_t length, float scale,
                             float (&scores)[8][4]) {
  constexpr float kLog2E = 1.44269504088896341f;
  const int32_t lane = ThreadIndex() % 32;
  ENCODERD_UNROLL
  for (int32_t g = 0; g < 8; ++g) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t q = first_query + lane / 4 + i / 2 * 8;
      const int32_t k = key + g * 8 + lane % 4 * 2 + i % 2;
      const float added = q < length && k < length ? bias[k - q] : 0.0f;
      scores[g][i] = scores[g][i] * scale + added * kLog2E;
    }
  }
}

// Running softmax of the two queries that a lane has a share of.
struct Running {
  float max[2];
  float sum[2];  // of this lane's keys only
};

// scores -> probabilities against the maximum so far; `out` and the sums are
// brought to it. Keys from `keys` on count nothing.
template <int kD>
ENCODERD_DEVICE void Softmax(int32_t keys, float scale, float (&scores)[8][4],
                             Running* running, float (&out)[kD / 8][4]) {
  const int32_t first_key = ThreadIndex() % 4 * 2;
  float max[2] = {running->max[0], running->max[1]};
  ENCODERD_UNROLL
  for (int32_t g = 0; g < 8; ++g) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      if (g * 8 + first_key + i % 2 >= keys) scores[g][i] = -Infinity();
      max[i / 2] = Max(max[i / 2], scores[g][i]);
    }
  }
  float correction[2];
  ENCODERD_UNROLL
  for (int32_t q = 0; q < 2; ++q) {
    max[q] = Max(max[q], ShuffleXor(max[q], 1));
    max[q] = Max(max[q], ShuffleXor(max[q], 2));
    correction[q] = Exp2((running->max[q] - max[q]) * scale);
    running->max[q] = max[q];
    running->sum[q] *= correction[q];
  }
  ENCODERD_UNROLL
  for (int32_t g = 0; g < 8; ++g) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      scores[g][i] = Exp2((scores[g][i] - max[i / 2]) * scale);
      running->sum[i / 2] += scores[g][i];
    }
  }
  ENCODERD_UNROLL
  for (int32_t d = 0; d < kD / 8; ++d) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 4; ++i) out[d][i] *= correction[i / 2];
  }
}

template <typename T, int kD>
ENCODERD_DEVICE void StoreContext(const float (&out)[kD / 8][4],
                                  const Running& running, int32_t first_query,
                                  int32_t length, int32_t head_size,
                                  int64_t stride, T* context) {
  const int32_t lane = ThreadIndex() % 32;
  float sum[2] = {running.sum[0], running.sum[1]};
  ENCODERD_UNROLL
  for (int32_t q = 0; q < 2; ++q) {
    sum[q] += ShuffleXor(sum[q], 1);
    sum[q] += ShuffleXor(sum[q], 2);
  }
  ENCODERD_UNROLL
  for (int32_t q = 0; q < 2; ++q) {
    const int32_t query = first_query + lane / 4 + q * 8;
    if (query >= length) continue;
    ENCODERD_UNROLL
    for (int32_t d = 0; d < kD / 8; ++d) {
      const int32_t column = d * 8 + lane % 4 * 2;
      if (column >= head_size) continue;
      StoreWord(Pack<T>(out[d][2 * q] / sum[q], out[d][2 * q + 1] / sum[q]),
                context + query * stride + column);
    }
  }
}

template <typename T, int kD, bool kBiased>
ENCODERD_KERNEL(kThreads)
AttentionKernel(const T* qkv, const AttentionWork* all, int32_t heads,
                int32_t head_size, float scale, const float* bias,
                int32_t bias_stride, T* context) {
  AwaitEarlierKernels();
  const AttentionWork work = all[BlockX()];
  const int32_t length = work.length;
  if (length == 0) return;  // the whole block
  const int64_t hidden = static_cast<int64_t>(heads) * head_size;
  const int64_t stride = 3 * hidden;
  const int32_t head_column = BlockY() * head_size;
  const T* q = qkv + work.first * stride + head_column;
  const T* k = q + hidden;
  const T* v = k + hidden;
  T* queries = reinterpret_cast<T*>(SharedMemory());
  T* keys = queries + kQueries * kD;
  T* values = keys + kKeys * kD;

  const int32_t block_query = work.query_block * kQueries;
  const int32_t first_query = block_query + ThreadIndex() / 32 * 16;
  const bool busy = first_query < length;  // of the whole warp
  LoadTile<T, kD>(q, stride, block_query, length, head_size, queries);
  LoadTile<T, kD>(k, stride, 0, length, head_size, keys);
  CopyCommit();

  float out[kD / 8][4] = {};
  Running running = {{-Infinity(), -Infinity()}, {0.0f, 0.0f}};
  for (int32_t key = 0; key < length; key += kKeys) {
    const int32_t left = length - key;
    const int32_t groups = left >= kKeys ? 4 : (left + 15) / 16;
    LoadTile<T, kD>(v, stride, key, length, head_size, values);
    CopyCommit();
    CopyWait<1>();
    Barrier();  // queries and keys are there
    float scores[8][4] = {};
    if (busy) Scores<T, kD>(queries, keys, groups, scores);
    Barrier();  // keys are read
    if (left > kKeys)
      LoadTile<T, kD>(k, stride, key + kKeys, length, head_size, keys);
    CopyCommit();
    if (kBiased && busy) {
      AddBias(bias + BlockY() * bias_stride, first_query, key, length, scale,
              scores);
    }
    if (busy) Softmax<kD>(left, kBiased ? 1.0f : scale, scores, &running, out);
    CopyWait<1>();
    Barrier();  // values are there
    if (busy) AddValues<T, kD>(scores, values, groups, out);
    Barrier();  // values are read
  }
  if (busy) {
    StoreContext<T, kD>(out, running, first_query, length, head_size, hidden,
                        context + work.first * hidden + head_column);
  }
}

template <typename T, int kD>
int LaunchAttention(const AttentionArgs& args, float scale,
                    const OpStream& stream) {
  LaunchShape shape;
  shape.blocks_x = args.work_count;
  shape.blocks_y = args.heads;
  shape.threads = kThreads;
  shape.shared_bytes = (kQueries + 2 * kKeys) * kD * sizeof(T);
  return Launch(args.bias == nullptr ? AttentionKernel<T, kD, false>
                                     : AttentionKernel<T, kD, true>,
                shape, stream, static_cast<const T*>(args.qkv), args.work,
                args.heads, args.head_size, scale, args.bias, args.bias_stride,
                static_cast<T*>(args.context));
}

}  // namespace

template <typename T>
int Attention16(const AttentionArgs& args, float scale,
                const OpStream& stream) {
  if (args.head_size <= 32) return LaunchAttention<T, 32>(args, scale, stream);
  if (args.head_size <= 64) return LaunchAttention<T, 64>(args, scale, stream);
  return LaunchAttention<T, kMaxHeadSize>(args, scale, stream);
}

template int Attention16<Half>(const AttentionArgs&, float, const OpStream&);
template int Attention16<Bf16>(const AttentionArgs&, float, const OpStream&);

}  // namespace cuda
}  // namespace encoderd
