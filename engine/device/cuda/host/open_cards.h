// Opens cards with a library of products and the algorithms kept for it: what
// OpenCuda does, over any runtime.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_OPEN_CARDS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_OPEN_CARDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/device/cuda/products/algorithms.h"
#include "engine/device/cuda/products/bucketed_product.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cuda {

struct CardOptions {
  std::string dtype = "auto";      // as NewCudaDevice
  std::string operands = "dtype";  // as NewCudaDevice
  // Where the choice of algorithms is kept; empty: nothing is.
  std::string tuning_folder;
  // Whether the kernels' fast paths prove themselves at start (cuda_device.h).
  bool prove_paths = true;
  // Up to how many rows products are proved and timed, and at most up to a full
  // batch (bucketed_product.h).
  int64_t most_tuned_rows = kBucketRows.back();
};

// The libraries of a card. fused: with the erf GELU in the epilogue;
// UNIMPLEMENTED where the build or the card has none.
struct CardLibraries {
  NewLibrary plain;
  std::function<absl::StatusOr<std::unique_ptr<AlgorithmLibrary>>(const Card&)>
      fused;
};

// Several cards are one Device (several_devices.h). They must be of one kind
// and give the same bits (tuned_products.h). No ordinals: all cards.
// UNAVAILABLE: no card is visible; INVALID_ARGUMENT: one is named twice, or
// they differ; else as NewCudaDevice.
absl::StatusOr<std::unique_ptr<Device>> OpenCards(
    const std::shared_ptr<Runtime>& runtime, const CardLibraries& libraries,
    std::vector<int32_t> ordinals, const CardOptions& options);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_OPEN_CARDS_H_
