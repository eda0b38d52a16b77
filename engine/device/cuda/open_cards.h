// Opens cards with a library of products and the algorithms kept for it: what
// OpenCuda does, over any runtime.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_OPEN_CARDS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_OPEN_CARDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/cuda/tuned_products.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cuda {

// The library for the device that the calling thread uses.
using NewLibrary =
    std::function<absl::StatusOr<std::unique_ptr<AlgorithmLibrary>>()>;

// Several cards are one Device (several_devices.h). They must be of one kind
// and share one choice of algorithms, so that a text has the same bits on each.
// No ordinals: all cards. tuning_folder: where timed choices are kept; empty,
// or not to be written: nothing is timed. UNAVAILABLE: no card is visible;
// INVALID_ARGUMENT: one is named twice, or they differ; else as NewCudaDevice.
absl::StatusOr<std::unique_ptr<Device>> OpenCards(
    const std::shared_ptr<Runtime>& runtime, const NewLibrary& new_library,
    std::vector<int32_t> ordinals, const std::string& dtype,
    const std::string& tuning_folder, const std::string& operands = "dtype");

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_OPEN_CARDS_H_
