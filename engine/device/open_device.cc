// Words of --device and --dtype -> a Device.
#include "absl/strings/str_cat.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/device/device.h"

namespace encoderd {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const std::string& device,
                                                   const std::string& dtype) {
  if (device != "auto" && device != "cpu") {
    return absl::UnimplementedError(absl::StrCat(
        "device \"", device, "\" is not supported; choose auto or cpu"));
  }
  if (dtype == "auto" || dtype == "fp32")
    return cpu::OpenCpu(DType::kF32, cpu::DetectIsa());
  if (dtype == "bf16") return cpu::OpenCpu(DType::kBF16, cpu::DetectIsa());
  return absl::UnimplementedError(
      absl::StrCat("dtype \"", dtype,
                   "\" is not supported on a CPU; choose auto, fp32 or bf16"));
}

}  // namespace encoderd
