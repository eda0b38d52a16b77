// In the place of cutlass_library.cc in a build without CUTLASS.
#include "engine/device/cuda/products/cutlass_products.h"

namespace encoderd {
namespace cuda {

absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> NewCutlassLibrary(
    const Card& card) {
  return absl::UnimplementedError(
      "this build has no CUTLASS (configure with ENCODERD_CUTLASS=ON)");
}

}  // namespace cuda
}  // namespace encoderd
