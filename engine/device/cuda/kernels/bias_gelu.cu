// y [rows,cols] = function(y + bias), in place; function is GELU with the
// exact erf, its tanh form, or ReLU.
//
// A thread takes eight neighbours of kRows rows, so that a column's bias is
// loaded once for them; a block these rows, or an equal part of their columns.
// Bytes moved: y read and written once, 2 rows cols elements. cuBLASLt's own
// GELU is the tanh form (off by up to 4.7e-4), so the exact one is here: in
// 16 bits gelu.h's, in float erff's.
#include "engine/device/cuda/kernels/elements.h"
#include "engine/device/cuda/kernels/gelu.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kMaxThreads = 256;
constexpr int32_t kRows = 2;

template <typename T, ElementWise kFunction>
ENCODERD_DEVICE float Apply(float x) {
  if (kFunction == ElementWise::kRelu) return Max(x, 0.0f);
  if (kFunction == ElementWise::kGeluErf) {
    return sizeof(T) == 2 ? FastGeluErf(x)
                          : 0.5f * x * (1.0f + Erf(x * 0.70710678118654752f));
  }
  const float inner = 0.79788456080286536f * (x + 0.044715f * x * x * x);
  return 0.5f * x * (1.0f + Tanh(inner));
}

template <typename T, ElementWise kFunction>
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
      FromFloat(
          Apply<T, kFunction>(ToFloat(values[r].values[i]) + add.values[i]),
          &values[r].values[i]);
    }
    StoreVector8(values[r], at + r * cols);
  }
}

template <typename T, ElementWise kFunction>
int LaunchBiasActivation(const BiasActivationArgs& args,
                         const OpStream& stream) {
  const int32_t vectors = args.cols / 8;
  LaunchShape shape;
  shape.blocks_x = (args.rows + kRows - 1) / kRows;
  shape.blocks_y = (vectors + kMaxThreads - 1) / kMaxThreads;
  const int32_t of_block = (vectors + shape.blocks_y - 1) / shape.blocks_y;
  shape.threads = (of_block + 31) / 32 * 32;
  return Launch(BiasActivationKernel<T, kFunction>, shape, stream, args.bias,
                args.rows, args.cols, static_cast<T*>(args.y));
}

}  // namespace

int BiasActivation(const BiasActivationArgs& args, const OpStream& stream) {
  if (args.rows == 0) return 0;
  return WithElement(args.element, [&]<typename T>() {
    switch (args.function) {
      case ElementWise::kGeluErf:
        return LaunchBiasActivation<T, ElementWise::kGeluErf>(args, stream);
      case ElementWise::kGeluTanh:
        return LaunchBiasActivation<T, ElementWise::kGeluTanh>(args, stream);
      case ElementWise::kRelu:
        break;
    }
    return LaunchBiasActivation<T, ElementWise::kRelu>(args, stream);
  });
}

}  // namespace cuda
}  // namespace encoderd
