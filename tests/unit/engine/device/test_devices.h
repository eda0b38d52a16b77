// The CPU devices that this machine can open: every instruction set up to its
// own in fp32, and bf16 where it has it.
#ifndef ENCODERD_TESTS_UNIT_ENGINE_DEVICE_TEST_DEVICES_H_
#define ENCODERD_TESTS_UNIT_ENGINE_DEVICE_TEST_DEVICES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cpu/cpu_device.h"
#include "engine/device/device.h"

namespace encoderd {

struct TestDevice {
  cpu::Isa isa;
  DType dtype;

  // team: null for the process's own.
  std::unique_ptr<Device> Open(
      std::shared_ptr<cpu::Team> team = nullptr) const {
    return cpu::OpenCpu(dtype, isa, std::move(team)).value();
  }
};

inline std::vector<TestDevice> TestDevices() {
  std::vector<TestDevice> devices;
  const cpu::Isa best = cpu::DetectIsa();
  for (cpu::Isa isa :
       {cpu::Isa::kPortable, cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (isa <= best) devices.push_back({isa, DType::kF32});
  }
  if (best >= cpu::Isa::kAvx512Bf16)
    devices.push_back({cpu::Isa::kAvx512Bf16, DType::kBF16});
  return devices;
}

// "avx2_fp32": for test names.
inline std::string TestDeviceName(const TestDevice& device) {
  return std::string(IsaName(device.isa)) + "_" + DTypeName(device.dtype);
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_DEVICE_TEST_DEVICES_H_
