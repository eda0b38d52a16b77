// The tile that reads least of L2 for its products; its GELU runs under
// nothing. Blocks in pairs share columns of the weight: for many rows.
#include "engine/device/cuda/products/cutlass_gelu_kernel.h"

namespace encoderd {
namespace cuda {

CutlassGeluTile CutlassGelu128x256() {
  return CutlassGeluTileOf<cute::Shape<cute::_128, cute::_256, cute::_64>,
                           cute::Shape<cute::_2, cute::_1, cute::_1>,
                           cutlass::gemm::KernelTmaWarpSpecializedCooperative,
                           cutlass::epilogue::TmaWarpSpecializedCooperative>(
      "128x256 cooperative");
}

}  // namespace cuda
}  // namespace encoderd
