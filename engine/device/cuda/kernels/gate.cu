// y [rows,F] = activation(first F columns of x [rows,2F]) * the other F.
//
// A thread takes eight neighbors of each half in kRows rows, a block these
// rows, or an equal part of their columns; all loads are issued before one is
// waited for. Bytes moved: x read and y written once, 3 rows F elements. The
// activation and its product are float, the result is rounded once. F is a
// multiple of 8.
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
GateKernel(const T* x, int64_t rows, int32_t cols, T* y) {
  AwaitEarlierKernels();
  const int32_t column = 8 * (BlockY() * BlockThreads() + ThreadIndex());
  if (column >= cols) return;
  const int64_t first = static_cast<int64_t>(BlockX()) * kRows;
  const T* from = x + 2 * first * cols + column;
  Vector8<T> values[kRows], gates[kRows];
  ENCODERD_UNROLL
  for (int32_t r = 0; r < kRows; ++r) {
    if (first + r >= rows) break;
    values[r] = LoadVector8(from + 2 * r * cols);
    gates[r] = LoadVector8(from + (2 * r + 1) * cols);
  }
  ENCODERD_UNROLL
  for (int32_t r = 0; r < kRows; ++r) {
    if (first + r >= rows) break;
    ENCODERD_UNROLL
    for (int32_t i = 0; i < 8; ++i) {
      FromFloat(Activate<T, kActivation>(ToFloat(values[r].values[i])) *
                    ToFloat(gates[r].values[i]),
                &values[r].values[i]);
    }
    StoreVector8(values[r], y + (first + r) * cols + column);
  }
}

template <typename T, Activation kActivation>
int LaunchGate(const GateOp& op, const OpStream& stream) {
  const auto cols = static_cast<int32_t>(op.y.cols);
  const int32_t vectors = cols / 8;
  LaunchShape shape;
  shape.blocks_x = (op.y.rows + kRows - 1) / kRows;
  shape.blocks_y = (vectors + kMaxThreads - 1) / kMaxThreads;
  const int32_t of_block = (vectors + shape.blocks_y - 1) / shape.blocks_y;
  shape.threads = (of_block + 31) / 32 * 32;
  return Launch(GateKernel<T, kActivation>, shape, stream,
                static_cast<const T*>(op.x.data), op.y.rows, cols,
                static_cast<T*>(op.y.data));
}

}  // namespace

int Start(const GateOp& op, const OpStream& stream) {
  if (op.y.rows == 0) return 0;
  return WithElement(op.y.dtype, [&]<typename T>() {
    return WithActivation(op.activation, [&]<Activation kActivation>() {
      return LaunchGate<T, kActivation>(op, stream);
    });
  });
}

}  // namespace cuda
}  // namespace encoderd
