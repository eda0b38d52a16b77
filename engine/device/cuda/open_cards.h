// Opens cards with a library of products and the algorithms kept for it: what
// OpenCuda does, over any runtime.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_OPEN_CARDS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_OPEN_CARDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/cuda/tuned_products.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cuda {

// The library for the device that the calling thread uses.
using NewLibrary =
    std::function<absl::StatusOr<std::unique_ptr<AlgorithmLibrary>>()>;

// Card `ordinal`. tuning_folder: where timed choices are kept; empty: nothing
// is timed. UNAVAILABLE: no card is visible; else as NewCudaDevice.
absl::StatusOr<std::unique_ptr<Device>> OpenCard(
    std::shared_ptr<Runtime> runtime, const NewLibrary& new_library,
    int32_t ordinal, const std::string& dtype,
    const std::string& tuning_folder);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_OPEN_CARDS_H_
