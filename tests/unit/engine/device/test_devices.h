// The CPU devices that this machine can open: every instruction set up to its
// own, in fp32 and bf16.
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
  bool int8 = false;  // products

  // team: null for the process's own.
  std::unique_ptr<Device> Open(
      std::shared_ptr<cpu::Team> team = nullptr) const {
    return (int8 ? cpu::OpenInt8Cpu(isa, std::move(team))
                 : cpu::OpenCpu(dtype, isa, std::move(team)))
        .value();
  }
};

inline std::vector<TestDevice> TestDevices() {
  std::vector<TestDevice> devices;
  const cpu::Isa best = cpu::DetectIsa();
  for (cpu::Isa isa :
       {cpu::Isa::kPortable, cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (isa > best) continue;
    devices.push_back({isa, DType::kF32});
    devices.push_back({isa, DType::kBF16});
  }
  if (best >= cpu::Isa::kAvx512Bf16)
    devices.push_back({cpu::Isa::kAvx512Bf16, DType::kBF16});
  if (cpu::HasIsa(cpu::Isa::kAvx512Amx))
    devices.push_back({cpu::Isa::kAvx512Amx, DType::kBF16});
  return devices;
}

// The same, and those whose products multiply int8.
inline std::vector<TestDevice> TestDevicesAndInt8() {
  std::vector<TestDevice> devices = TestDevices();
  for (const cpu::Isa isa : {cpu::Isa::kAvx512, cpu::Isa::kAvx512Bf16}) {
    if (cpu::HasVnni() && cpu::HasIsa(isa))
      devices.push_back({isa, DType::kBF16, true});
  }
  return devices;
}

// "avx2_fp32": for test names.
inline std::string TestDeviceName(const TestDevice& device) {
  return std::string(IsaName(device.isa)) + "_" +
         (device.int8 ? "int8" : DTypeName(device.dtype));
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_DEVICE_TEST_DEVICES_H_
