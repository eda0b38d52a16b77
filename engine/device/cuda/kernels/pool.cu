// One sequence's token states -> its vector, normalized if asked; or the
// states themselves as floats.
//
// A block takes a sequence, a thread a column (of more than 1024 every 1024th),
// its tokens in order: the sums have the order of the host's PoolStates. A
// thread's loads wait for none of its sums. Bytes moved: the states once, and
// each result once, which may lie in the host's pinned memory. The norm is a
// sum of squares over the block in a fixed order.
#include <algorithm>

#include "engine/device/cuda/kernels/elements.h"
#include "engine/device/cuda/kernels/warp.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kMostThreads = 1024;
constexpr int32_t kMostColumns = kMaxHidden / kMostThreads;  // of a thread
constexpr int32_t kAtOnce = 16;  // tokens that a thread loads before it adds

// The value after token i, of which the first is 0; i is at least 1.
ENCODERD_DEVICE float AddToken(float value, float next, int32_t i,
                               Pooling kind) {
  if (kind == Pooling::kMax)  // a NaN stays, as on the host
    return next > value || next != next ? next : value;
  if (kind == Pooling::kWeightedMean)
    return value + static_cast<float>(i + 1) * next;
  return value + next;
}

// The pooled value of one column; x points to its first token.
template <typename T>
ENCODERD_DEVICE float PoolColumn(const T* x, int32_t length, int64_t stride,
                                 Pooling kind) {
  if (kind == Pooling::kCls) return ToFloat(x[0]);
  if (kind == Pooling::kLastToken) return ToFloat(x[(length - 1) * stride]);
  float value = ToFloat(x[0]);
  for (int32_t i = 1; i < length; i += kAtOnce) {
    const int32_t last = length - 1 - i;
    T next[kAtOnce];
    ENCODERD_UNROLL
    for (int32_t k = 0; k < kAtOnce; ++k)
      next[k] = x[(i + (k < last ? k : last)) * stride];
    ENCODERD_UNROLL
    for (int32_t k = 0; k < kAtOnce; ++k) {
      if (k <= last) value = AddToken(value, ToFloat(next[k]), i + k, kind);
    }
  }
  const float count = static_cast<float>(length);
  if (kind == Pooling::kMean) return value / count;
  if (kind == Pooling::kMeanSqrtLen) return value / Sqrt(count);
  if (kind == Pooling::kWeightedMean)
    return value / (count * (count + 1.0f) * 0.5f);
  return value;
}

template <typename T>
ENCODERD_KERNEL(kMostThreads)
PoolKernel(const T* states, const PoolWork* all, int32_t hidden, float* out) {
  AwaitEarlierKernels();
  const PoolWork work = all[BlockX()];
  if (work.length == 0) return;  // the whole block
  const T* x = states + static_cast<int64_t>(work.first) * hidden;
  float* y = out + work.out_offset;
  if (work.states) {
    const int64_t count = static_cast<int64_t>(work.length) * hidden;
    for (int64_t i = ThreadIndex(); i < count; i += BlockThreads())
      y[i] = ToFloat(x[i]);
    return;
  }
  float values[kMostColumns];
  float squares = 0.0f;
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kMostColumns; ++c) {
    const int32_t column = ThreadIndex() + c * BlockThreads();
    if (column >= hidden) continue;
    values[c] = PoolColumn(x + column, work.length, hidden, work.pooling);
    squares += values[c] * values[c];
  }
  float divisor = 1.0f;
  if (work.normalize) {  // the whole block
    const float norm =
        Sqrt(BlockSum(squares, reinterpret_cast<float*>(SharedMemory())));
    divisor = Max(norm, 1e-12f);
  }
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kMostColumns; ++c) {
    const int32_t column = ThreadIndex() + c * BlockThreads();
    if (column < hidden) y[column] = values[c] / divisor;
  }
}

}  // namespace

int KernelsPtxVersion(int32_t* version) {
  return PtxVersionOf(PoolKernel<float>, version);
}

int Start(const PoolOp& op, const OpStream& stream) {
  if (op.work_count == 0) return 0;
  LaunchShape shape;
  shape.blocks_x = op.work_count;
  const int64_t warps = (op.x.cols + 31) / 32;
  shape.threads =
      static_cast<int32_t>(std::min<int64_t>(32 * warps, kMostThreads));
  shape.shared_bytes = 32 * sizeof(float);
  return WithElement(op.x.dtype, [&]<typename T>() {
    return Launch(PoolKernel<T>, shape, stream,
                  static_cast<const T*>(op.x.data), op.work,
                  static_cast<int32_t>(op.x.cols), op.out);
  });
}

}  // namespace cuda
}  // namespace encoderd
