// context [T,H] = softmax(Q K^T / sqrt(D) + bias) V for each sequence and head,
// on tensor cores, for 16-bit elements and sequences of any length: the general
// path. attention_whole.cu has short ones, attention_float.cu has float.
//
// A block of four warps takes 64 queries of one sequence and head, a warp 16 of
// them; keys and values pass through shared memory in tiles of 64 keys (32 for
// heads past 64), the next tile loading while one is computed with. Nothing is
// padded in memory: rows past the sequence and columns past D arrive as zeros.
// Of the last tile only the groups of 16 keys are computed that have one. A
// reach begins the tiles at the first key that the block sees and ends them
// behind the last, so that a window costs its width; tiles before and behind it
// are neither loaded nor computed. Softmax is running; its order depends on the
// sequence's own length and the reach only. Bytes moved: Q and context once, K
// and V once for each 64 queries, and where there is a bias four bytes for each
// score, which lie in the caches. Numbers: attention_tiles.h.
#include <cfloat>

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
static_assert(kQueries == AttentionQueries(DType::kF16), "see ops.h");

template <int kD>
struct Blocking {
  static constexpr int32_t kKeys = kD <= 64 ? 64 : 32;  // of a tile
  static constexpr int32_t kGroups = kKeys / 16;
  static constexpr int32_t kTile = kKeys * kD;  // elements
  // Blocks that an SM must have registers for; 1: no limit pays.
  static constexpr int kBlocks = kD == 32 ? 5 : kD == 64 ? 4 : 1;
};

// What a warp keeps from tile to tile.
template <typename T, int kD>
struct Warp {
  Head<T> head;
  T* queries;           // tiles of the block
  T* tile;              // computed with: keys, then their values
  T* other;             // loading, or read: likewise
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
                             uint32_t (&probabilities)[kGroups][4],
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
  Exponentials<T, kGroups>(warp->head.scale, shift, scores, warp->sum,
                           probabilities);
}

// Starts copying the tile of keys from `key` on, and their values.
template <typename T, int kD>
ENCODERD_DEVICE void LoadKeys(const Warp<T, kD>& warp, int32_t key, T* tile) {
  using B = Blocking<kD>;
  const Head<T>& head = warp.head;
  const T* keys = head.q + head.hidden;
  LoadTile<T, kD, B::kKeys, kThreads>(keys, head, key, ThreadIndex(), tile);
  LoadTile<T, kD, B::kKeys, kThreads>(keys + head.hidden, head, key,
                                      ThreadIndex(), tile + B::kTile);
}

// The tile of keys key .. key + 16 kGroups - 1, already asked for. kLast: it is
// the last, and may have keys past those seen; else it is full.
template <typename T, int kD, Form kForm, int kGroups, bool kLast>
ENCODERD_DEVICE void AddTile(int32_t key, Warp<T, kD>* warp) {
  float scores[2 * kGroups][4];
  Begin<T, kForm, kGroups>(warp->head, warp->first_query, key, scores);
  CopyWait<0>();
  Barrier();  // the tile is there, and the other one is read
  if constexpr (!kLast) {
    LoadKeys(*warp, key + Blocking<kD>::kKeys, warp->other);
    CopyCommit();
  }
  if (warp->busy()) {
    Scores<T, kD, kGroups>(warp->queries + warp->first_row * kD, warp->tile,
                           scores);
    uint32_t probabilities[kGroups][4];
    Softmax<T, kD, kForm, kGroups, kLast>(key, scores, probabilities, warp);
    AddValues<T, kD, kGroups>(probabilities, warp->tile + Blocking<kD>::kTile,
                              warp->out);
  }
  if constexpr (!kLast) {
    T* const read = warp->tile;
    warp->tile = warp->other;
    warp->other = read;
  }
}

// The last tile, of kGroups groups of 16 keys or fewer.
template <typename T, int kD, Form kForm, int kGroups>
ENCODERD_DEVICE void AddLastTile(int32_t key, Warp<T, kD>* warp) {
  if constexpr (kGroups > 1) {
    if (warp->seen.end - key <= (kGroups - 1) * 16)
      return AddLastTile<T, kD, kForm, kGroups - 1>(key, warp);
  }
  AddTile<T, kD, kForm, kGroups, true>(key, warp);
}

template <typename T, int kD, Form kForm>
ENCODERD_KERNEL(kThreads, Blocking<kD>::kBlocks)
AttentionKernel(AttentionParameters<T> all) {
  using B = Blocking<kD>;
  AwaitEarlierKernels();
  const AttentionWork work = all.work[BlockX()];
  // The whole block.
  if (work.length == 0 || work.path != AttentionPath::kGeneral) return;
  Warp<T, kD> warp = {};
  warp.head = HeadOf(all, work, BlockY());
  warp.queries = reinterpret_cast<T*>(SharedMemory());
  warp.tile = warp.queries + kQueries * kD;
  warp.other = warp.tile + 2 * B::kTile;
  warp.first_row = ThreadIndex() / 32 * 16;
  warp.first_query = work.query_block * kQueries + warp.first_row;
  // No infinity: with a reach a query may see none of 32 keys, the first tile,
  // and the difference of two infinities would be no number.
  warp.shift[0] = warp.shift[1] = -FLT_MAX;
  warp.seen = KeysSeen<kForm>(all.reach, work.query_block * kQueries, kQueries,
                              work.length);
  const Head<T>& head = warp.head;
  int32_t key = warp.seen.first;
  LoadTile<T, kD, kQueries, kThreads>(head.q, head, work.query_block * kQueries,
                                      ThreadIndex(), warp.queries);
  LoadKeys(warp, key, warp.tile);
  CopyCommit();

  for (; warp.seen.end - key > B::kKeys; key += B::kKeys)
    AddTile<T, kD, kForm, B::kGroups, false>(key, &warp);
  AddLastTile<T, kD, kForm, B::kGroups>(key, &warp);
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
  shape.shared_bytes = (kQueries * kD + 4 * Blocking<kD>::kTile) * sizeof(T);
  static_assert(
      (kQueries * kD + 4 * Blocking<kD>::kTile) * sizeof(T) <= 48 << 10,
      "see LaunchShape");
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
