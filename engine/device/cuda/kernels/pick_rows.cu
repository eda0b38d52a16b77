// y [count,cols] = some rows of x, in the order of a list.
//
// A block takes a row, a thread eight neighbors of its columns, of more than
// kMaxThreads such groups every kMaxThreads-th. Bytes moved: the rows read and
// written once. cols is a multiple of 8.
#include <algorithm>

#include "engine/device/cuda/kernels/elements.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kMaxThreads = 256;

template <typename T>
ENCODERD_KERNEL(kMaxThreads)
PickRowsKernel(const T* x, const int32_t* rows, int32_t cols, T* y) {
  AwaitEarlierKernels();
  const T* from = x + static_cast<int64_t>(rows[BlockX()]) * cols;
  T* to = y + static_cast<int64_t>(BlockX()) * cols;
  for (int32_t column = 8 * ThreadIndex(); column < cols;
       column += 8 * BlockThreads())
    StoreVector8(LoadVector8(from + column), to + column);
}

}  // namespace

int Start(const PickRowsOp& op, const OpStream& stream) {
  if (op.y.rows == 0) return 0;
  const auto cols = static_cast<int32_t>(op.y.cols);
  LaunchShape shape;
  shape.blocks_x = op.y.rows;
  shape.threads = std::min((cols / 8 + 31) / 32 * 32, kMaxThreads);
  return WithElement(op.y.dtype, [&]<typename T>() {
    return Launch(PickRowsKernel<T>, shape, stream,
                  static_cast<const T*>(op.x.data), op.rows, cols,
                  static_cast<T*>(op.y.data));
  });
}

}  // namespace cuda
}  // namespace encoderd
