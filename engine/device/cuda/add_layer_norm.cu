// y [rows,H] = LayerNorm(x + residual).
//
// A warp takes a row into registers, a block four rows. Bytes moved: each of x,
// residual and y once, 3 rows H elements. y may be x or residual: a warp has
// read its whole row before it writes.
#include "engine/device/cuda/elements.h"
#include "engine/device/cuda/layer_norm.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

template <typename T, int kChunks>
ENCODERD_KERNEL(kNormThreads)
AddLayerNormKernel(const T* x, const T* residual, int64_t rows, int32_t hidden,
                   NormArgs norm, T* y) {
  AwaitEarlierKernels();
  const int64_t row =
      static_cast<int64_t>(BlockX()) * kRowsPerBlock + ThreadIndex() / 32;
  if (row >= rows) return;  // whole warps
  float values[kChunks][8] = {};
  AddRow(x + row * hidden, hidden, values);
  if (residual != nullptr) AddRow(residual + row * hidden, hidden, values);
  NormaliseRow(values, hidden, norm, y + row * hidden);
}

}  // namespace

int AddLayerNorm(const AddLayerNormArgs& args, const OpStream& stream) {
  if (args.rows == 0) return 0;
  LaunchShape shape;
  shape.blocks_x = (args.rows + kRowsPerBlock - 1) / kRowsPerBlock;
  shape.threads = kNormThreads;
  return WithElement(args.element, [&]<typename T>() {
    return WithChunks(args.hidden, [&]<int kChunks>() {
      return Launch(AddLayerNormKernel<T, kChunks>, shape, stream,
                    static_cast<const T*>(args.x),
                    static_cast<const T*>(args.residual), args.rows,
                    args.hidden, args.norm, static_cast<T*>(args.y));
    });
  });
}

}  // namespace cuda
}  // namespace encoderd
