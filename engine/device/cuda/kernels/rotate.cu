// Q and K of qkv [T,3H] rotated in place by position: of each head's first
// 2 pairs columns, (x[i], x[i + pairs]) = (x[i] c - x[i + pairs] s,
// x[i + pairs] c + x[i] s), c and s being [position id, i] of tables
// [P,pairs]. Columns behind them are not touched.
//
// A thread takes eight pairs of one head and token, in Q and in K, so that it
// loads their cosines and sines once; all loads are issued before one is waited
// for. Where eight pairs do not begin at multiples of eight elements it takes
// one pair. A block takes as many rows as its threads hold, or part of one.
// Bytes moved: the rotated columns of Q and K read and written once, up to
// 4 T H elements, and for each head 8 pairs bytes of the tables, which all
// heads but the first find in the caches. Floats, each result rounded once.
#include "engine/device/cuda/kernels/elements.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kMaxThreads = 256;

// kWidth neighbors, 8 or 1.
template <typename T, int kWidth>
struct Some {
  T values[kWidth];
};
template <int kWidth, typename T>
ENCODERD_DEVICE Some<T, kWidth> LoadSome(const T* from) {
  if constexpr (kWidth == 1) {
    return {*from};
  } else {
    const Vector8<T> vector = LoadVector8(from);
    Some<T, kWidth> some;
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 8; ++i) some.values[i] = vector.values[i];
    return some;
  }
}
template <int kWidth, typename T>
ENCODERD_DEVICE void StoreSome(const Some<T, kWidth>& some, T* to) {
  if constexpr (kWidth == 1) {
    *to = some.values[0];
  } else {
    Vector8<T> vector;
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 8; ++i) vector.values[i] = some.values[i];
    StoreVector8(vector, to);
  }
}

// How a row is shared out: `groups` threads for each head, row_threads of them
// in a block, which has `rows` rows.
struct Shares {
  int32_t groups;
  int32_t row_threads;
  int32_t rows;
};

template <typename T, int kWidth>
ENCODERD_KERNEL(kMaxThreads)
RotateKernel(RotateOp op, Shares shares) {
  AwaitEarlierKernels();
  const int32_t block_row = ThreadIndex() / shares.row_threads;
  const int64_t row = static_cast<int64_t>(BlockX()) * shares.rows + block_row;
  const int32_t share =
      BlockY() * shares.row_threads + ThreadIndex() % shares.row_threads;
  const int32_t head = share / shares.groups;
  if (block_row >= shares.rows || row >= op.qkv.rows || head >= op.heads)
    return;
  const int32_t pair = share % shares.groups * kWidth;
  T* const q = static_cast<T*>(op.qkv.data) + row * op.qkv.cols +
               head * op.head_size + pair;
  T* const at[2] = {q, q + op.heads * op.head_size};  // and K's
  const int64_t angle =
      static_cast<int64_t>(op.position_ids[row]) * op.pairs + pair;
  Some<T, kWidth> low[2], high[2];
  ENCODERD_UNROLL
  for (int32_t m = 0; m < 2; ++m) {
    low[m] = LoadSome<kWidth>(at[m]);
    high[m] = LoadSome<kWidth>(at[m] + op.pairs);
  }
  const auto cos = LoadSome<kWidth>(op.cos + angle);
  const auto sin = LoadSome<kWidth>(op.sin + angle);
  ENCODERD_UNROLL
  for (int32_t m = 0; m < 2; ++m) {
    ENCODERD_UNROLL
    for (int32_t i = 0; i < kWidth; ++i) {
      const float x = ToFloat(low[m].values[i]);
      const float y = ToFloat(high[m].values[i]);
      const float c = cos.values[i], s = sin.values[i];
      FromFloat(x * c - y * s, &low[m].values[i]);
      FromFloat(y * c + x * s, &high[m].values[i]);
    }
    StoreSome<kWidth>(low[m], at[m]);
    StoreSome<kWidth>(high[m], at[m] + op.pairs);
  }
}

template <typename T, int kWidth>
int LaunchRotate(const RotateOp& op, const OpStream& stream) {
  Shares shares;
  shares.groups = op.pairs / kWidth;
  const int32_t of_row = shares.groups * op.heads;
  LaunchShape shape;
  shape.blocks_y = (of_row + kMaxThreads - 1) / kMaxThreads;
  shares.row_threads = (of_row + shape.blocks_y - 1) / shape.blocks_y;
  shares.rows = shape.blocks_y > 1 ? 1 : kMaxThreads / of_row;
  shape.blocks_x = (op.qkv.rows + shares.rows - 1) / shares.rows;
  shape.threads = (shares.row_threads * shares.rows + 31) / 32 * 32;
  return Launch(RotateKernel<T, kWidth>, shape, stream, op, shares);
}

}  // namespace

int Start(const RotateOp& op, const OpStream& stream) {
  if (op.qkv.rows == 0 || op.pairs == 0) return 0;
  return WithElement(op.qkv.dtype, [&]<typename T>() {
    return op.pairs % 8 == 0 && op.head_size % 8 == 0
               ? LaunchRotate<T, 8>(op, stream)
               : LaunchRotate<T, 1>(op, stream);
  });
}

}  // namespace cuda
}  // namespace encoderd
