// y [rows,cols] = x in e4m3, each row with its own scale (ops.h).
//
// A warp takes a row, a block four, so that a row's codes depend on itself
// alone. Bytes moved: x is read twice, the second time from the caches, and y
// written once, half as many: 3 rows cols in 16 bits.
#include "engine/device/cuda/kernels/e4m3_rows.h"
#include "engine/device/cuda/kernels/elements.h"
#include "engine/device/cuda/kernels/warp.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kRowsPerBlock = 4;
constexpr int32_t kThreads = 32 * kRowsPerBlock;

template <typename T>
ENCODERD_KERNEL(kThreads)
QuantizeRowsKernel(const T* x, int64_t rows, int32_t cols, uint16_t* codes,
                   float* scales) {
  AwaitEarlierKernels();
  const int64_t row =
      static_cast<int64_t>(BlockX()) * kRowsPerBlock + ThreadIndex() / 32;
  if (row >= rows) return;  // whole warps
  const int32_t lane = ThreadIndex() % 32;
  const T* from = x + row * cols;
  float largest = kLeastLargest;
  for (int32_t column = 8 * lane; column < cols; column += 8 * 32) {
    largest = LargerMagnitude(LoadVector8(from + column), largest);
  }
  largest = WarpMax(largest);
  const float inverse = kLargestE4m3 / largest;
  if (lane == 0) scales[row] = largest / kLargestE4m3;
  uint16_t* to = codes + row * (cols / 2);
  for (int32_t column = 16 * lane; column < cols; column += 16 * 32) {
    Vector8<uint16_t> pairs;
    ENCODERD_UNROLL
    for (int32_t half = 0; half < 2; ++half) {
      E4m3Codes(LoadVector8(from + column + 8 * half), inverse,
                pairs.values + 4 * half);
    }
    StoreVector8(pairs, to + column / 2);
  }
}

}  // namespace

int Start(const QuantizeRowsOp& op, const OpStream& stream) {
  if (op.x.rows == 0) return 0;
  LaunchShape shape;
  shape.blocks_x = (op.x.rows + kRowsPerBlock - 1) / kRowsPerBlock;
  shape.threads = kThreads;
  char* const y = static_cast<char*>(op.y);
  return WithElement(op.x.dtype, [&]<typename T>() {
    return Launch(QuantizeRowsKernel<T>, shape, stream,
                  static_cast<const T*>(op.x.data), op.x.rows,
                  static_cast<int32_t>(op.x.cols),
                  reinterpret_cast<uint16_t*>(y),
                  reinterpret_cast<float*>(y + op.x.rows * op.x.cols));
  });
}

}  // namespace cuda
}  // namespace encoderd
