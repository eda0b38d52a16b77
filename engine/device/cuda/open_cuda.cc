// The real runtime and the real products behind open_cards.
#include "engine/device/cuda/cublaslt_products.h"
#include "engine/device/cuda/cuda_device.h"
#include "engine/device/cuda/cudart_runtime.h"
#include "engine/device/cuda/open_cards.h"

namespace encoderd {
namespace cuda {

absl::StatusOr<std::unique_ptr<Device>> OpenCuda(
    int32_t ordinal, const std::string& dtype,
    const std::string& tuning_folder) {
  return OpenCard(NewCudartRuntime(), &NewCublasLtLibrary, ordinal, dtype,
                  tuning_folder);
}

}  // namespace cuda
}  // namespace encoderd
