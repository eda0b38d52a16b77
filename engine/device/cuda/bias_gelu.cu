// y [rows,cols] = function(y + bias), in place; function is GELU with the
// exact erf, its tanh form, or ReLU.
//
// A thread takes eight neighbours of one row. Bytes moved: y read and written
// once, 2 rows cols elements. cuBLASLt's own GELU is the tanh form (off by up
// to 4.7e-4), so the exact one is here.
#include "engine/device/cuda/elements.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int32_t kThreads = 256;

template <ElementWise kFunction>
ENCODERD_DEVICE float Apply(float x) {
  if (kFunction == ElementWise::kRelu) return Max(x, 0.0f);
  if (kFunction == ElementWise::kGeluErf)
    return 0.5f * x * (1.0f + Erf(x * 0.70710678118654752f));
  const float inner = 0.79788456080286536f * (x + 0.044715f * x * x * x);
  return 0.5f * x * (1.0f + Tanh(inner));
}

template <typename T, ElementWise kFunction>
ENCODERD_KERNEL(kThreads)
BiasActivationKernel(const float* bias, int64_t vectors, int32_t row_vectors,
                     T* y) {
  AwaitEarlierKernels();
  const int64_t v = static_cast<int64_t>(BlockX()) * kThreads + ThreadIndex();
  if (v >= vectors) return;
  const int32_t column = static_cast<int32_t>(v % row_vectors) * 8;
  const Vector8<float> add = LoadVector8(bias + column);
  Vector8<T> values = LoadVector8(y + v * 8);
  ENCODERD_UNROLL
  for (int32_t i = 0; i < 8; ++i) {
    FromFloat(Apply<kFunction>(ToFloat(values.values[i]) + add.values[i]),
              &values.values[i]);
  }
  StoreVector8(values, y + v * 8);
}

template <typename T, ElementWise kFunction>
int LaunchBiasActivation(const BiasActivationArgs& args,
                         const OpStream& stream) {
  const int32_t row_vectors = args.cols / 8;
  const int64_t vectors = args.rows * row_vectors;
  LaunchShape shape;
  shape.blocks_x = (vectors + kThreads - 1) / kThreads;
  shape.threads = kThreads;
  return Launch(BiasActivationKernel<T, kFunction>, shape, stream, args.bias,
                vectors, row_vectors, static_cast<T*>(args.y));
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
