// context [T,H] = softmax(Q K^T / sqrt(D) + bias) V for sequences whose keys
// and values lie in shared memory as a whole, for 16-bit elements: up to 16
// tokens (kWarp), 64 or 128 (kWhole64, kWhole128). attention.cu has longer
// ones.
//
// A warp takes 16 queries of one sequence and head. Up to 16 tokens that is all
// of them: the four warps of a block take four heads, each with its own tiles,
// and do not wait for each other. For longer sequences a block has a warp for
// each 16 of 64 or 128 queries, and one head; a warp past the sequence only
// copies. Q and K come first, V while scores are computed. Softmax is one pass
// over all keys, in groups of 16, as many as the sequence has; the order
// depends on its length only. A reach spares no work here, it masks scores.
// Bytes moved: Q, K, V and context once, and where there is a bias four bytes
// for each score, which lie in the caches. Numbers: attention_tiles.h.
#include "engine/device/cuda/attention_path.h"
#include "engine/device/cuda/kernels/attention_kernels.h"
#include "engine/device/cuda/kernels/attention_tiles.h"
#include "engine/device/cuda/kernels/primitives.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

template <AttentionPath kPath>
struct Blocking {
  static constexpr int32_t kKeys = PathTokens(kPath);
  // Of the shortest sequence that takes the path.
  static constexpr int kLeastGroups = kKeys == 128 ? 5 : kKeys == 64 ? 2 : 1;
  // Those that share the tiles of a head.
  static constexpr int32_t kHeadWarps = kKeys / 16;
  static constexpr int32_t kHeads = kHeadWarps == 1 ? 4 : 1;  // of a block
  static constexpr int32_t kThreads = 32 * kHeadWarps * kHeads;
  // Blocks that an SM must have registers for; 1: no limit pays.
  static constexpr int Blocks(int32_t head_size) {
    if (head_size > 64) return 1;
    if (kPath == AttentionPath::kWhole128) return head_size == 32 ? 3 : 2;
    return head_size == 32 ? 8 : 6;
  }
};

// Of those that share the tiles of a head.
template <AttentionPath kPath>
ENCODERD_DEVICE void Meet() {
  if constexpr (Blocking<kPath>::kHeadWarps == 1) {
    WarpBarrier();
  } else {
    Barrier();
  }
}

// What a warp works on: tiles, and its own part of that of queries.
template <typename T>
struct Warp {
  Head<T> head;
  int32_t first_query;
  T* queries;
  const T* keys;
  const T* values;
};

// Once the copies of queries and keys are a group, and those of values another.
template <AttentionPath kPath, typename T, int kD, Form kForm, int kGroups>
ENCODERD_DEVICE void Attend(const Warp<T>& warp) {
  const Head<T>& head = warp.head;
  const bool busy = warp.first_query < head.length;
  float sum[2] = {};
  uint32_t probabilities[kGroups][4];
  float scores[2 * kGroups][4];
  Begin<T, kForm, kGroups>(head, warp.first_query, 0, scores);
  CopyWait<1>();
  Meet<kPath>();  // queries and keys are there
  if (busy) {
    Scores<T, kD, kGroups>(warp.queries, warp.keys, scores);
    MaskLastGroup<kGroups>(head.length, scores);
    if constexpr (kForm == Form::kReached)
      MaskBeyondReach<T, kGroups>(head, warp.first_query, 0, scores);
    float shift[2] = {-Infinity(), -Infinity()};
    RowMax<kGroups>(scores, shift);
    ENCODERD_UNROLL
    for (int32_t q = 0; q < 2; ++q) shift[q] *= head.scale;
    Exponentials<T, kGroups>(head.scale, shift, scores, sum, probabilities);
  }
  CopyWait<0>();
  Meet<kPath>();  // values are there
  if (!busy) return;
  float out[kD / 8][4] = {};
  AddValues<T, kD, kGroups>(probabilities, warp.values, out);
  StoreContext<T, kD>(head, warp.first_query, out, sum, warp.queries);
}

// Attend with as many groups of keys as the sequence has, at least kGroups.
template <AttentionPath kPath, typename T, int kD, Form kForm, int kGroups>
ENCODERD_DEVICE void AttendToAll(const Warp<T>& warp) {
  if constexpr (kGroups < Blocking<kPath>::kKeys / 16) {
    if (warp.head.length > kGroups * 16)
      return AttendToAll<kPath, T, kD, kForm, kGroups + 1>(warp);
  }
  Attend<kPath, T, kD, kForm, kGroups>(warp);
}

template <AttentionPath kPath, typename T, int kD, Form kForm>
ENCODERD_KERNEL(Blocking<kPath>::kThreads, Blocking<kPath>::Blocks(kD))
AttentionWholeKernel(AttentionParameters<T> all) {
  using B = Blocking<kPath>;
  constexpr int32_t kShare = 32 * B::kHeadWarps;  // threads
  constexpr int32_t kTile = B::kKeys * kD;
  AwaitEarlierKernels();
  const AttentionWork work = all.work[BlockX()];
  if (work.path != kPath) return;  // the whole block
  const int32_t share = ThreadIndex() / kShare;
  const int32_t head_index = BlockY() * B::kHeads + share;
  if (head_index >= all.heads) return;  // the whole warp; it has no others
  const int32_t thread = ThreadIndex() % kShare;
  const Head<T> head = HeadOf(all, work, head_index);
  T* queries = reinterpret_cast<T*>(SharedMemory()) + share * 3 * kTile;
  T* keys = queries + kTile;
  T* values = keys + kTile;
  const auto load = [&](const T* matrix, T* tile) {
    LoadTile<T, kD, B::kKeys, kShare>(matrix, head, 0, thread, tile);
  };
  load(head.q, queries);
  load(head.q + head.hidden, keys);
  CopyCommit();
  load(head.q + 2 * head.hidden, values);
  CopyCommit();
  const int32_t first_query = thread / 32 * 16;
  AttendToAll<kPath, T, kD, kForm, B::kLeastGroups>(
      {head, first_query, queries + first_query * kD, keys, values});
}

template <AttentionPath kPath, typename T, int kD>
int LaunchWhole(const AttentionOp& op, const OpStream& stream) {
  using B = Blocking<kPath>;
  LaunchShape shape;
  shape.blocks_x = op.work_count;
  shape.blocks_y = (op.heads + B::kHeads - 1) / B::kHeads;
  shape.threads = B::kThreads;
  shape.shared_bytes = B::kHeads * 3 * B::kKeys * kD * sizeof(T);
  static_assert(B::kHeads * 3 * B::kKeys * kD * sizeof(T) <= 48 << 10,
                "see LaunchShape");
  return WithForm(op, [&]<Form kForm>() {
    return Launch(AttentionWholeKernel<kPath, T, kD, kForm>, shape, stream,
                  ParametersOf<T>(op));
  });
}

}  // namespace

template <AttentionPath kPath, typename T>
int AttentionWhole(const AttentionOp& op, const OpStream& stream) {
  if (op.head_size <= 32) return LaunchWhole<kPath, T, 32>(op, stream);
  if constexpr (HasPath(DType::kF16, kMaxHeadSize, kPath)) {
    if (op.head_size > 64)
      return LaunchWhole<kPath, T, kMaxHeadSize>(op, stream);
  }
  return LaunchWhole<kPath, T, 64>(op, stream);
}

#define ENCODERD_WHOLE(path, T)                                              \
  template int AttentionWhole<AttentionPath::path, T>(const AttentionOp& op, \
                                                      const OpStream& stream)
ENCODERD_WHOLE(kWarp, Half);
ENCODERD_WHOLE(kWarp, Bf16);
ENCODERD_WHOLE(kWhole64, Half);
ENCODERD_WHOLE(kWhole64, Bf16);
ENCODERD_WHOLE(kWhole128, Half);
ENCODERD_WHOLE(kWhole128, Bf16);

}  // namespace cuda
}  // namespace encoderd
