// y [rows,H] = LayerNorm(x + residual), or LayerNorm(x) without a residual;
// if asked, sum = x + residual, or x, and the rows of y in e4m3 too.
//
// A warp takes a row into registers, a block four rows; all loads of a row are
// issued before one is waited for. Bytes moved: each of x, residual and y once,
// 3 rows H elements (2 without a residual), one more for a sum, and rows H
// bytes of codes. y may be x or residual, and so may sum: a warp has read its
// whole row before it writes. What is normalized is the sum before it is
// rounded, so that keeping it changes no bits of y. Codes and
// scales are those of y as it is stored, so that they are QuantizeRowsOp's own.
#include "engine/device/cuda/kernels/e4m3_rows.h"
#include "engine/device/cuda/kernels/elements.h"
#include "engine/device/cuda/kernels/layer_norm.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

// A row's codes and scale. All 32 lanes call it.
template <int kChunks, typename T>
ENCODERD_DEVICE void QuantizeRow(const RowOf<kChunks, T>& row, int32_t hidden,
                                 uint16_t* codes, float* scale) {
  float largest = kLeastLargest;
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kChunks; ++c) {
    if (HasChunk<kChunks>(c, hidden))
      largest = LargerMagnitude(row.chunks[c], largest);
  }
  largest = WarpMax(largest);
  const float inverse = kLargestE4m3 / largest;
  if (ThreadIndex() % 32 == 0) *scale = largest / kLargestE4m3;
  ENCODERD_UNROLL
  for (int32_t c = 0; c < kChunks; ++c) {
    if (!HasChunk<kChunks>(c, hidden)) continue;
    Vector4<uint16_t> pairs;
    E4m3Codes(row.chunks[c], inverse, pairs.values);
    StoreVector4(pairs, codes + ChunkColumn(c) / 2);
  }
}

// What a kernel is compiled for: x alone, x and copying it, x + residual, or
// that and keeping it.
enum class Sum { kNone, kCopied, kAdded, kKept };

template <typename T, int kChunks, Sum kSum, bool kQuantized>
ENCODERD_KERNEL(kNormThreads)
AddLayerNormKernel(const T* x, const T* residual, int64_t rows, int32_t hidden,
                   NormRef norm, T* y, char* quantized, T* sum) {
  AwaitEarlierKernels();
  const int64_t row =
      static_cast<int64_t>(BlockX()) * kRowsPerBlock + ThreadIndex() / 32;
  if (row >= rows) return;  // whole warps
  float values[kChunks][8];
  const RowOf<kChunks, T> first = LoadRow<kChunks>(x + row * hidden, hidden);
  if constexpr (kSum == Sum::kAdded || kSum == Sum::kKept) {
    const RowOf<kChunks, T> second =
        LoadRow<kChunks>(residual + row * hidden, hidden);
    Widen(first, values);
    AddRow(second, values);
    if constexpr (kSum == Sum::kKept)
      StoreRow(Narrowed<T>(values), hidden, sum + row * hidden);
  } else {
    Widen(first, values);
    if constexpr (kSum == Sum::kCopied)
      StoreRow(first, hidden, sum + row * hidden);
  }
  NormaliseRow(hidden, norm, values);
  const RowOf<kChunks, T> out = Narrowed<T>(values);
  StoreRow(out, hidden, y + row * hidden);
  if constexpr (kQuantized) {
    QuantizeRow(out, hidden,
                reinterpret_cast<uint16_t*>(quantized + row * hidden),
                reinterpret_cast<float*>(quantized + rows * hidden) + row);
  }
}

template <typename T, int kChunks, Sum kSum>
int LaunchAddLayerNorm(const AddNormOp& op, const OpStream& stream) {
  LaunchShape shape;
  shape.blocks_x = (op.x.rows + kRowsPerBlock - 1) / kRowsPerBlock;
  shape.threads = kNormThreads;
  auto* kernel = AddLayerNormKernel<T, kChunks, kSum, false>;
  if constexpr (sizeof(T) == 2) {
    if (op.quantized != nullptr)
      kernel = AddLayerNormKernel<T, kChunks, kSum, true>;
  }
  return Launch(kernel, shape, stream, static_cast<const T*>(op.x.data),
                static_cast<const T*>(op.residual.data), op.x.rows,
                static_cast<int32_t>(op.x.cols), op.norm,
                static_cast<T*>(op.y.data), static_cast<char*>(op.quantized),
                static_cast<T*>(op.sum.data));
}

}  // namespace

int Start(const AddNormOp& op, const OpStream& stream) {
  if (op.x.rows == 0) return 0;
  return WithElement(op.x.dtype, [&]<typename T>() {
    return WithChunks(op.x.cols, [&]<int kChunks>() {
      if (op.residual.data == nullptr) {
        return op.sum.data == nullptr || op.sum.data == op.x.data
                   ? LaunchAddLayerNorm<T, kChunks, Sum::kNone>(op, stream)
                   : LaunchAddLayerNorm<T, kChunks, Sum::kCopied>(op, stream);
      }
      return op.sum.data == nullptr
                 ? LaunchAddLayerNorm<T, kChunks, Sum::kAdded>(op, stream)
                 : LaunchAddLayerNorm<T, kChunks, Sum::kKept>(op, stream);
    });
  });
}

}  // namespace cuda
}  // namespace encoderd
