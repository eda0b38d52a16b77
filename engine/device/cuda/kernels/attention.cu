// context [T,H] = softmax(Q K^T / sqrt(D) + bias) V for each sequence and head,
// on tensor cores, for 16-bit elements and sequences of any length: the general
// path. attention_whole.cu has short ones, attention_float.cu has float.
//
// A block of four warps takes 64 queries of one sequence and head, a warp 16 of
// them; keys and values pass through shared memory 64 at a time, each loading
// while the other is computed with. Nothing is padded in memory: rows past the
// sequence and columns past D arrive as zeros. Of the last tile only the groups
// of 16 keys are computed that have one. A reach begins the tiles at the first
// key that the block sees and ends them behind the last, so that a window costs
// its width; tiles before and behind it are neither loaded nor computed.
// Softmax is running; its order depends on the sequence's own length and the
// reach only. Bytes moved: Q and context once, K and V once for each 64
// queries, and where there is a bias four bytes for each score, which lie in
// the caches. Numbers: attention_tiles.h.
#include "engine/device/cuda/kernels/attention_kernels.h"
#include "engine/device/cuda/kernels/attention_tiles.h"
#include "engine/device/cuda/kernels/primitives.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kWarps = 4;
constexpr int32_t kThreads = 32 * kWarps;
constexpr int32_t kQueries = 16 * kWarps;
constexpr int32_t kKeys = 64;
static_assert(kQueries == AttentionQueries(DType::kF16), "see ops.h");
static_assert(kQueries == kKeys, "one Load for both");

template <typename T, int kD>
ENCODERD_DEVICE void Load(const T* matrix, const Head<T>& head, int32_t row,
                          T* tile) {
  LoadTile<T, kD, kKeys, kThreads>(matrix, head, row, kKeys, ThreadIndex(),
                                   tile);
}

// What a warp keeps from tile to tile.
template <typename T, int kD>
struct Warp {
  Head<T> head;
  T* queries;  // tiles of the block
  T* keys;
  T* values;
  int32_t first_row;    // of its queries in their tile
  int32_t first_query;  // and in the sequence
  KeyRange seen;        // by the block
  // Running softmax of the two queries that a lane has a share of.
  float shift[2];  // what exponents are lowered by: the maximum, scaled
  float sum[2];    // of this lane's keys
  float out[kD / 8][4];

  ENCODERD_DEVICE bool busy() const { return first_query < head.length; }
};

// Brings what was summed so far to a new maximum.
template <typename T, int kD>
ENCODERD_DEVICE void Correct(const float (&shift)[2], Warp<T, kD>* warp) {
  float correction[2];
  ENCODERD_UNROLL
  for (int32_t q = 0; q < 2; ++q) {
    correction[q] = Exp2(warp->shift[q] - shift[q]);
    warp->shift[q] = shift[q];
    warp->sum[q] *= correction[q];
  }
  ENCODERD_UNROLL
  for (int32_t d = 0; d < kD / 8; ++d) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 4; ++i) warp->out[d][i] *= correction[i / 2];
  }
}

template <typename T, int kD, Form kForm, int kGroups, bool kLast>
ENCODERD_DEVICE void Softmax(int32_t key, float (&scores)[2 * kGroups][4],
                             Warp<T, kD>* warp) {
  if (kLast) MaskLastGroup<kGroups>(warp->seen.end - key, scores);
  if constexpr (kForm == Form::kReached)
    MaskBeyondReach<T, kGroups>(warp->head, warp->first_query, key, scores);
  float shift[2] = {-Infinity(), -Infinity()};
  RowMax<kGroups>(scores, shift);
  ENCODERD_UNROLL
  for (int32_t q = 0; q < 2; ++q)
    shift[q] = Max(warp->shift[q], shift[q] * warp->head.scale);
  Correct(shift, warp);
  Exponentials<kGroups>(warp->head.scale, shift, scores, warp->sum);
}

// The tile of keys key .. key + 16 kGroups - 1, already asked for. kLast: it is
// the last, and may have keys past those seen; else it is full.
template <typename T, int kD, Form kForm, int kGroups, bool kLast>
ENCODERD_DEVICE void AddTile(int32_t key, Warp<T, kD>* warp) {
  const Head<T>& head = warp->head;
  Load<T, kD>(head.q + 2 * head.hidden, head, key, warp->values);
  CopyCommit();
  float scores[2 * kGroups][4];
  Begin<T, kForm, kGroups>(head, warp->first_query, key, scores);
  CopyWait<1>();
  Barrier();  // queries and keys are there
  if (warp->busy()) {
    Scores<T, kD, kGroups>(warp->queries + warp->first_row * kD, warp->keys,
                           scores);
  }
  if (!kLast) {
    Barrier();  // keys are read
    Load<T, kD>(head.q + head.hidden, head, key + kKeys, warp->keys);
  }
  CopyCommit();
  if (warp->busy()) Softmax<T, kD, kForm, kGroups, kLast>(key, scores, warp);
  CopyWait<1>();
  Barrier();  // values are there
  if (warp->busy()) AddValues<T, kD, kGroups>(scores, warp->values, warp->out);
  if (!kLast) Barrier();  // values are read
}

template <typename T, int kD, Form kForm>
ENCODERD_KERNEL(kThreads)
AttentionKernel(AttentionParameters<T> all) {
  AwaitEarlierKernels();
  const AttentionWork work = all.work[BlockX()];
  // The whole block.
  if (work.length == 0 || work.path != AttentionPath::kGeneral) return;
  Warp<T, kD> warp = {};
  warp.head = HeadOf(all, work, BlockY());
  warp.queries = reinterpret_cast<T*>(SharedMemory());
  warp.keys = warp.queries + kQueries * kD;
  warp.values = warp.keys + kKeys * kD;
  warp.first_row = ThreadIndex() / 32 * 16;
  warp.first_query = work.query_block * kQueries + warp.first_row;
  warp.shift[0] = warp.shift[1] = -Infinity();
  warp.seen = KeysSeen<kForm>(all.reach, work.query_block * kQueries, kQueries,
                              work.length);
  const Head<T>& head = warp.head;
  int32_t key = warp.seen.first;
  Load<T, kD>(head.q, head, work.query_block * kQueries, warp.queries);
  Load<T, kD>(head.q + head.hidden, head, key, warp.keys);
  CopyCommit();

  for (; warp.seen.end - key > kKeys; key += kKeys)
    AddTile<T, kD, kForm, 4, false>(key, &warp);
  const int32_t groups = (warp.seen.end - key + 15) / 16;
  if (groups == 1) AddTile<T, kD, kForm, 1, true>(key, &warp);
  if (groups == 2) AddTile<T, kD, kForm, 2, true>(key, &warp);
  if (groups == 3) AddTile<T, kD, kForm, 3, true>(key, &warp);
  if (groups == 4) AddTile<T, kD, kForm, 4, true>(key, &warp);
  if (!warp.busy()) return;
  StoreContext<T, kD>(head, warp.first_query, warp.out, warp.sum,
                      warp.queries + warp.first_row * kD);
}

template <typename T, int kD>
int LaunchAttention(const AttentionOp& op, const OpStream& stream) {
  LaunchShape shape;
  shape.blocks_x = op.work_count;
  shape.blocks_y = op.heads;
  shape.threads = kThreads;
  shape.shared_bytes = (kQueries + 2 * kKeys) * kD * sizeof(T);
  return WithForm(op, [&]<Form kForm>() {
    return Launch(AttentionKernel<T, kD, kForm>, shape, stream,
                  ParametersOf<T>(op));
  });
}

}  // namespace

template <typename T>
int Attention16(const AttentionOp& op, const OpStream& stream) {
  if (op.head_size <= 32) return LaunchAttention<T, 32>(op, stream);
  if (op.head_size <= 64) return LaunchAttention<T, 64>(op, stream);
  return LaunchAttention<T, kMaxHeadSize>(op, stream);
}

template int Attention16<Half>(const AttentionOp&, const OpStream&);
template int Attention16<Bf16>(const AttentionOp&, const OpStream&);

}  // namespace cuda
}  // namespace encoderd
