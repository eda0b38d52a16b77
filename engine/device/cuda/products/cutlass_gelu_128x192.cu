// For many rows: as wide as the registers of 128 threads hold, so that it reads
// least of L2 for its products. Blocks in pairs share columns of the weight.
#include "engine/device/cuda/products/cutlass_gelu_kernel.h"

namespace encoderd {
namespace cuda {

CutlassGeluTile CutlassGelu128x192() {
  return CutlassGeluTileOf<cute::Shape<cute::_128, cute::_192, cute::_64>,
                           cute::Shape<cute::_2, cute::_1, cute::_1>>(
      "128x192 pingpong");
}

}  // namespace cuda
}  // namespace encoderd
