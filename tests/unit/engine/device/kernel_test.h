// What the tests of the CPU's kernels share: each runs for every instruction
// set and element type of this machine, over memory of the test's own.
#ifndef ENCODERD_TESTS_UNIT_ENGINE_DEVICE_KERNEL_TEST_H_
#define ENCODERD_TESTS_UNIT_ENGINE_DEVICE_KERNEL_TEST_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/device/cpu/kernels.h"
#include "tests/support/narrow.h"
#include "tests/support/tolerances.h"
#include "tests/unit/engine/device/test_devices.h"

namespace encoderd {
namespace cpu {

// In bf16 the instruction's, even where the device prefers floats.
inline const Kernels& KernelsOf(const TestDevice& device) {
  if (device.isa >= Isa::kAvx512Bf16) return *Avx512Bf16Kernels();
  if (device.isa == Isa::kAvx512) return *Avx512Kernels(device.dtype);
  return device.isa == Isa::kAvx2 ? *Avx2Kernels(device.dtype)
                                  : *PortableKernels(device.dtype);
}

inline const ProductKernels& ProductsOf(const TestDevice& device) {
  return device.isa == Isa::kAvx512Amx ? *Avx512AmxProducts()
                                       : KernelsOf(device);
}

class KernelTest : public ::testing::TestWithParam<TestDevice> {
 protected:
  KernelTest() : kernels_(KernelsOf(GetParam())) {}

  double tolerance() const { return kernels_.bf16 ? kBf16Op : kFp32Op; }

  // Values as the kernels keep them, and back. Rounds `values` to the type.
  std::string Elements(std::vector<float>* values) const {
    std::string bytes(values->size() * (kernels_.bf16 ? 2 : 4), '\0');
    for (size_t i = 0; i < values->size(); ++i) {
      if (kernels_.bf16) {
        const uint16_t narrow = emulation::ToBf16((*values)[i]);
        std::memcpy(&bytes[i * 2], &narrow, 2);
        (*values)[i] = emulation::FromBf16(narrow);
      } else {
        std::memcpy(&bytes[i * 4], &(*values)[i], 4);
      }
    }
    return bytes;
  }
  // What an op is given of elements in `rows` rows.
  Matrix View(const std::string& bytes, int64_t rows) const {
    const DType dtype = kernels_.bf16 ? DType::kBF16 : DType::kF32;
    const auto count = static_cast<int64_t>(bytes.size()) / DTypeBytes(dtype);
    return {const_cast<char*>(bytes.data()), rows, count / rows, dtype};
  }
  template <typename O>
  void Run(const O& op, void* scratch) const {
    static_cast<const Kernel<O>&>(kernels_).run(op, scratch);
  }
  std::vector<float> Floats(const std::string& bytes) const {
    std::vector<float> values(bytes.size() / (kernels_.bf16 ? 2 : 4));
    kernels_.to_float(bytes.data(), static_cast<int64_t>(values.size()),
                      values.data());
    return values;
  }

  std::vector<float> Random(int64_t count, float scale, float shift = 0) {
    std::normal_distribution<float> normal(shift, scale);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random_);
    return values;
  }

  const Kernels& kernels_;
  std::mt19937 random_{5};
};

inline std::string KernelTestName(
    const ::testing::TestParamInfo<TestDevice>& info) {
  return TestDeviceName(info.param);
}

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_DEVICE_KERNEL_TEST_H_
