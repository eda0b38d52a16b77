// Two tiles at a time, one's GELU under the other's products. Blocks in
// pairs share rows of x: neighbors along the columns, which even one tile of
// rows has.
#include "engine/device/cuda/products/cutlass_gelu_kernel.h"

namespace encoderd {
namespace cuda {

CutlassGeluTile CutlassGelu128x128() {
  return CutlassGeluTileOf<cute::Shape<cute::_128, cute::_128, cute::_64>,
                           cute::Shape<cute::_1, cute::_2, cute::_1>>(
      "128x128 pingpong");
}

}  // namespace cuda
}  // namespace encoderd
