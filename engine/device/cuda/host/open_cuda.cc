// The real runtime and the real products behind open_cards.
#include "engine/device/cuda/host/cuda_device.h"
#include "engine/device/cuda/host/cudart_runtime.h"
#include "engine/device/cuda/host/open_cards.h"
#include "engine/device/cuda/products/cublaslt_products.h"
#include "engine/device/cuda/products/cutlass_products.h"

namespace encoderd {
namespace cuda {

absl::StatusOr<std::unique_ptr<Device>> OpenCuda(
    const std::vector<int32_t>& ordinals, const std::string& dtype,
    const std::string& tuning_folder, const std::string& operands) {
  CardLibraries libraries;
  libraries.plain = [] { return NewCublasLtLibrary(); };
  libraries.fused = [](const Card& card) { return NewCutlassLibrary(card); };
  CardOptions options;
  options.dtype = dtype;
  options.operands = operands;
  options.tuning_folder = tuning_folder;
  return OpenCards(NewCudartRuntime(), libraries, ordinals, options);
}

}  // namespace cuda
}  // namespace encoderd
