// y [rows,cols] = function(y + bias), in place; function is GELU with the
// erf, its tanh form, or ReLU.
//
// A thread takes eight neighbors of kRows rows, so that a column's bias is
// loaded once for them; a block these rows, or an equal part of their columns.
// Bytes moved: y read and written once, 2 rows cols elements. cuBLASLt's own
// GELU is the tanh form (off by up to 4.7e-4), so the erf form is here: in
// 16 bits gelu.h's, in float erff's.
#include "engine/device/cuda/kernels/elements.h"
#include "engine/device/cuda/kernels/gelu.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kMaxThreads = 256;
constexpr int32_t kRows = 2;

template <typename T, Activation kActivation>
ENCODERD_KERNEL(kMaxThreads)
BiasActivationKernel(const float* bias, int64_t rows, int32_t cols, T* y) {
  AwaitEarlierKernels();
  const int32_t column = 8 * (BlockY() * BlockThreads() + ThreadIndex());
  if (column >= cols) return;
  const int64_t first = static_cast<int64_t>(BlockX()) * kRows;
  T* at = y + first * cols + column;
  Vector8<T> values[kRows];
  ENCODERD_UNROLL
  for (int32_t r = 0; r < kRows; ++r) {
    if (first + r < rows) values[r] = LoadVector8(at + r * cols);
  }
  const Vector8<float> add = LoadVector8(bias + column);
  ENCODERD_UNROLL
  for (int32_t r = 0; r < kRows; ++r) {
    if (first + r >= rows) break;
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 8; ++i) {
      FromFloat(Activate<T, kActivation>(ToFloat(values[r].values[i]) +
                                         add.values[i]),
                &values[r].values[i]);
    }
    StoreVector8(values[r], at + r * cols);
  }
}

template <typename T, Activation kActivation>
int LaunchBiasActivation(const BiasActivationOp& op, const OpStream& stream) {
  const auto cols = static_cast<int32_t>(op.y.cols);
  const int32_t vectors = cols / 8;
  LaunchShape shape;
  shape.blocks_x = (op.y.rows + kRows - 1) / kRows;
  shape.blocks_y = (vectors + kMaxThreads - 1) / kMaxThreads;
  const int32_t of_block = (vectors + shape.blocks_y - 1) / shape.blocks_y;
  shape.threads = (of_block + 31) / 32 * 32;
  return Launch(BiasActivationKernel<T, kActivation>, shape, stream, op.bias,
                op.y.rows, cols, static_cast<T*>(op.y.data));
}

}  // namespace

int Start(const BiasActivationOp& op, const OpStream& stream) {
  if (op.y.rows == 0) return 0;
  return WithElement(op.y.dtype, [&]<typename T>() {
    return WithActivation(op.activation, [&]<Activation kActivation>() {
      return LaunchBiasActivation<T, kActivation>(op, stream);
    });
  });
}

}  // namespace cuda
}  // namespace encoderd
