// context [T,H] = softmax(Q K^T / sqrt(D) + bias) V in float throughout;
// attention.cu and attention_whole.cu have the 16-bit elements.
//
// A block of four warps takes 16 queries of one sequence and head, a warp four
// of them; keys and values pass through shared memory 32 at a time. For scores
// a lane is a key, for the weighted sum a column. Keys' rows are one float
// longer than D so that 32 rows of one column lie in different banks. Running
// softmax; its order depends on the sequence's own length and the reach only,
// and keys that no query of a block sees are not loaded. Bytes moved: Q
// and context once, K and V once for each 16 queries, and a bias for each
// score, which lies in the caches. Any D up to 128.
#include <cmath>

#include "engine/device/cuda/kernels/attention_kernels.h"
#include "engine/device/cuda/kernels/primitives.h"
#include "engine/device/cuda/kernels/warp.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kWarps = 4;
constexpr int32_t kThreads = 32 * kWarps;
constexpr int32_t kWarpQueries = 4;
constexpr int32_t kQueries = kWarps * kWarpQueries;
constexpr int32_t kKeys = 32;
constexpr int32_t kColumns = kMaxHeadSize / 32;  // of a lane
static_assert(kQueries == AttentionQueries(DType::kF32), "see ops.h");
static_assert(kQueries <= kKeys, "every query sees a key of its first tile");

// tile [rows,D] with rows `tile_stride` apart = rows row .. of a sequence's
// matrix, zeros past its end.
ENCODERD_DEVICE void LoadRows(const float* matrix, int64_t stride, int32_t row,
                              int32_t rows, int32_t length, int32_t head_size,
                              int32_t tile_stride, float* tile) {
  for (int32_t i = ThreadIndex(); i < rows * head_size; i += kThreads) {
    const int32_t r = i / head_size, column = i % head_size;
    const bool valid = row + r < length;
    tile[r * tile_stride + column] =
        valid ? matrix[(row + r) * stride + column] : 0.0f;
  }
}

template <Form kForm>
ENCODERD_KERNEL(kThreads)
AttentionFloatKernel(const float* qkv, const AttentionWork* all, int32_t heads,
                     int32_t head_size, float scale, const float* bias,
                     int32_t bias_stride, Reach reach, float* context) {
  AwaitEarlierKernels();
  const AttentionWork work = all[BlockX()];
  const int32_t length = work.length;
  if (length == 0) return;  // the whole block
  const int64_t hidden = static_cast<int64_t>(heads) * head_size;
  const int64_t stride = 3 * hidden;
  const int32_t head_column = BlockY() * head_size;
  const float* q = qkv + work.first * stride + head_column;
  float* queries = reinterpret_cast<float*>(SharedMemory());
  float* keys = queries + kQueries * head_size;
  float* values = keys + kKeys * (head_size + 1);
  const int32_t lane = ThreadIndex() % 32;
  const int32_t warp_query = ThreadIndex() / 32 * kWarpQueries;
  const int32_t block_query = work.query_block * kQueries;

  LoadRows(q, stride, block_query, kQueries, length, head_size, head_size,
           queries);
  float out[kWarpQueries][kColumns] = {};
  float max[kWarpQueries], sum[kWarpQueries];
  ENCODERD_UNROLL
  for (int32_t r = 0; r < kWarpQueries; ++r) {
    max[r] = -Infinity();
    sum[r] = 0.0f;
  }
  const KeyRange seen = KeysSeen<kForm>(reach, block_query, kQueries, length);
  const bool biased =
      kForm == Form::kBiased || (kForm == Form::kReached && bias != nullptr);
  for (int32_t key = seen.first; key < seen.end; key += kKeys) {
    Barrier();  // the last tile is read
    LoadRows(q + hidden, stride, key, kKeys, length, head_size, head_size + 1,
             keys);
    LoadRows(q + 2 * hidden, stride, key, kKeys, length, head_size, head_size,
             values);
    Barrier();  // the tile is there
    float p[kWarpQueries] = {};
    for (int32_t d = 0; d < head_size; ++d) {
      const float of_key = keys[lane * (head_size + 1) + d];
      ENCODERD_UNROLL
      for (int32_t r = 0; r < kWarpQueries; ++r)
        p[r] += queries[(warp_query + r) * head_size + d] * of_key;
    }
    ENCODERD_UNROLL
    for (int32_t r = 0; r < kWarpQueries; ++r) {
      p[r] *= scale;
      const int32_t query = block_query + warp_query + r;
      if (biased && query < length && key + lane < length)
        p[r] += bias[BlockY() * bias_stride + key + lane - query];
      if (key + lane >= seen.end) p[r] = -Infinity();
      if constexpr (kForm == Form::kReached) {
        if (!Sees(reach, key + lane - query)) p[r] = -Infinity();
      }
      const float new_max = Max(max[r], WarpMax(p[r]));
      const float correction = Exp(max[r] - new_max);
      p[r] = Exp(p[r] - new_max);
      max[r] = new_max;
      sum[r] = sum[r] * correction + WarpSum(p[r]);
      ENCODERD_UNROLL
      for (int32_t c = 0; c < kColumns; ++c) out[r][c] *= correction;
    }
    const int32_t left = seen.end - key < kKeys ? seen.end - key : kKeys;
    for (int32_t j = 0; j < left; ++j) {
      float of_key[kColumns];
      ENCODERD_UNROLL
      for (int32_t c = 0; c < kColumns; ++c) {
        const int32_t column = c * 32 + lane;
        of_key[c] = column < head_size ? values[j * head_size + column] : 0.0f;
      }
      ENCODERD_UNROLL
      for (int32_t r = 0; r < kWarpQueries; ++r) {
        const float weight = ShuffleFrom(p[r], j);
        ENCODERD_UNROLL
        for (int32_t c = 0; c < kColumns; ++c) out[r][c] += weight * of_key[c];
      }
    }
  }
  ENCODERD_UNROLL
  for (int32_t r = 0; r < kWarpQueries; ++r) {
    const int32_t query = block_query + warp_query + r;
    if (query >= length) continue;
    float* to = context + (work.first + query) * hidden + head_column;
    ENCODERD_UNROLL
    for (int32_t c = 0; c < kColumns; ++c) {
      const int32_t column = c * 32 + lane;
      if (column < head_size) to[column] = out[r][c] / sum[r];
    }
  }
}

int AttentionFloat(const AttentionOp& op, const OpStream& stream) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(op.head_size));
  LaunchShape shape;
  shape.blocks_x = op.work_count;
  shape.blocks_y = op.heads;
  shape.threads = kThreads;
  shape.shared_bytes = static_cast<int32_t>(
      ((kQueries + 2 * kKeys) * op.head_size + kKeys) * sizeof(float));
  return WithForm(op, [&]<Form kForm>() {
    return Launch(AttentionFloatKernel<kForm>, shape, stream,
                  static_cast<const float*>(op.qkv.data), op.work, op.heads,
                  op.head_size, scale, op.bias, op.bias_stride, op.reach,
                  static_cast<float*>(op.context.data));
  });
}

template <typename T>
int AttentionByPath(const AttentionOp& op, const OpStream& stream) {
  switch (op.path) {
    case AttentionPath::kWarp:
      return AttentionWhole<AttentionPath::kWarp, T>(op, stream);
    case AttentionPath::kWhole64:
      return AttentionWhole<AttentionPath::kWhole64, T>(op, stream);
    case AttentionPath::kWhole128:
      return AttentionWhole<AttentionPath::kWhole128, T>(op, stream);
    case AttentionPath::kGeneral:
      break;
  }
  return Attention16<T>(op, stream);
}

}  // namespace

int Start(const AttentionOp& op, const OpStream& stream) {
  if (op.work_count == 0) return 0;
  if (op.qkv.dtype == DType::kF16) return AttentionByPath<Half>(op, stream);
  if (op.qkv.dtype == DType::kBF16) return AttentionByPath<Bf16>(op, stream);
  return AttentionFloat(op, stream);
}

}  // namespace cuda
}  // namespace encoderd
