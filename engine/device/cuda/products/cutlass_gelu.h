// y [rows,out] = GELU(x [rows,in] weight^T + bias) by CUTLASS, as a table
// of tiles: what cutlass_products.cc knows of them, so that it can be tested
// over tiles of the tests' own and neither sees the other's headers.
//
// x, weight [out,in] and y are of one 16-bit element, row-major, aligned to 16;
// in and out are multiples of 8 (TMA moves rows of whole 16 bytes); bias is
// float and aligned to 16. Sums, bias and GELU are float, y is rounded once.
// y must not alias x.
//
// Thread-safe. Plain types only: this header is read by nvcc.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUTLASS_GELU_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUTLASS_GELU_H_

#include <cstdint>

#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

struct CutlassGeluArgs {
  DType element;  // kF16 or kBF16
  const void* x;
  const void* weight;
  const float* bias;
  void* y;
  int32_t rows;  // 1 or more
  int32_t in;
  int32_t out;
  int32_t processors;  // of the card: at most this many blocks run at once
};

// One compiled form of the kernel. A block computes whole tiles of y, each over
// all of K.
struct CutlassGeluTile {
  const char* name;  // "128x192 pingpong": a tile's rows, columns, schedule
  // Whether it computes `args`; pointers may be null. Asks nothing of a card.
  bool (*can_implement)(const CutlassGeluArgs& args);
  // Bytes of device memory that it would need besides; it is never given any.
  int64_t (*workspace_bytes)(const CutlassGeluArgs& args);
  // Sees that it fits the card that the calling thread uses, and lets it run
  // there; before the first start. The runtime's error code, 0 for success.
  int (*prepare)(DType element);
  // Puts one kernel on the stream, which may be capturing; takes no memory and
  // waits for nothing. The runtime's error code.
  int (*start)(const CutlassGeluArgs& args, const OpStream& stream);
};

CutlassGeluTile CutlassGelu128x192();
CutlassGeluTile CutlassGelu128x128();
CutlassGeluTile CutlassGelu64x128();

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUTLASS_GELU_H_
