// Half the rows of 128x128: for few rows, where it gives more blocks.
#include "engine/device/cuda/products/cutlass_gelu_kernel.h"

namespace encoderd {
namespace cuda {

CutlassGeluTile CutlassGelu64x128() {
  return CutlassGeluTileOf<cute::Shape<cute::_64, cute::_128, cute::_64>,
                           cute::Shape<cute::_1, cute::_1, cute::_1>>(
      "64x128 pingpong");
}

}  // namespace cuda
}  // namespace encoderd
