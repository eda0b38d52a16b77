// NVIDIA cards behind the device seam (engine/device/device.h).
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_CUDA_DEVICE_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_CUDA_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/device/cuda/host/agreement.h"
#include "engine/device/cuda/products/products.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cuda {

// The least compute capability that the kernels are compiled for.
constexpr int32_t kLeastComputeMajor = 8;

// What has programmatic dependent launches.
constexpr int32_t kLeastOverlapMajor = 9;

// What has cuBLASLt's products with a scale for each row of e4m3: Hopper alone.
constexpr int32_t kE4m3ComputeMajor = 9;
constexpr int32_t kE4m3ComputeMinor = 0;

// Card `ordinal` of `runtime`. dtype: "auto" (bf16), "bf16", "fp16", "fp32".
// operands: what products multiply, "dtype" or "fp8" (e4m3, in a 16-bit dtype).
// graphs: small batches run by CUDA graphs where the card shows that it can.
// agreement: the kernels' fast paths serve only where they prove themselves at
// start (prove_paths.h), on all cards of the process alike; null: they serve
// unproved, for tests.
// NOT_FOUND: no such card; UNIMPLEMENTED: a card, dtype or operands that are
// not supported, named.
absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(
    std::shared_ptr<Runtime> runtime, std::unique_ptr<ProductFactory> products,
    int32_t ordinal, const std::string& dtype,
    const std::string& operands = "dtype", bool graphs = true,
    std::shared_ptr<Agreement> agreement = nullptr);

// "cuda:7 does not exist; 2 devices are visible"
absl::Status NoSuchCard(int32_t ordinal, int32_t count);

// Cards of one kind as one Device, on the real runtime; no ordinals: all that
// are there. tuning_folder: where the choice of algorithms
// is kept; empty: nothing is. UNAVAILABLE, saying why: no
// driver, no card, no cuBLASLt; UNIMPLEMENTED: a build without CUDA.
absl::StatusOr<std::unique_ptr<Device>> OpenCuda(
    const std::vector<int32_t>& ordinals, const std::string& dtype,
    const std::string& tuning_folder, const std::string& operands = "dtype");

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_CUDA_DEVICE_H_
