// In the place of open_cuda.cc in a build without CUDA.
#include "engine/device/cuda/host/cuda_device.h"

namespace encoderd {
namespace cuda {

absl::StatusOr<std::unique_ptr<Device>> OpenCuda(
    const std::vector<int32_t>& ordinals, const std::string& dtype,
    const std::string& tuning_folder, const std::string& operands) {
  return absl::UnimplementedError(
      "this build has no CUDA (configure with ENCODERD_CUDA=ON)");
}

}  // namespace cuda
}  // namespace encoderd
