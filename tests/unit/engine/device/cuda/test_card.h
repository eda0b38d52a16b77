// The card that these tests run on: the emulation, or card 0 of this machine.
// The same tests are linked with emulated_card_of_tests.cc and, for programs
// with the label gpu, with real_card_of_tests.cc.
#ifndef ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_TEST_CARD_H_
#define ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_TEST_CARD_H_

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/device/cuda/host/cuda_device.h"
#include "engine/device/cuda/host/cuda_executor.h"
#include "engine/device/cuda/host/memory.h"
#include "engine/device/cuda/host/narrow.h"
#include "engine/device/cuda/ops.h"
#include "engine/device/cuda/products/algorithms.h"
#include "engine/device/cuda/runtime.h"
#include "engine/io/half_floats.h"
#include "tests/support/narrow.h"

namespace encoderd {
namespace cuda {

std::shared_ptr<Runtime> TestRuntime();
std::unique_ptr<ProductFactory> TestProducts();
std::unique_ptr<AlgorithmLibrary> TestLibrary();
bool IsEmulated();  // then tests choose sizes that one core can do

inline std::unique_ptr<Device> OpenTestCard(
    DType dtype, const std::string& operands = "dtype") {
  return NewCudaDevice(TestRuntime(), TestProducts(), 0, DTypeName(dtype),
                       operands)
      .value();
}

// As the server opens it: products chosen by bucket of rows, paths proved.
std::unique_ptr<Device> OpenProvenCard(const std::string& dtype,
                                       const std::string& operands);

// Whether the card computes fp8 products.
inline bool HasE4m3() {
  Card card;
  EXPECT_EQ(TestRuntime()->Describe(0, &card), 0);
  return card.compute_major == kE4m3ComputeMajor &&
         card.compute_minor == kE4m3ComputeMinor;
}

constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

// What a value becomes in `dtype`.
inline float Rounded(float value, DType dtype) {
  if (dtype == DType::kF16) return emulation::FromHalf(NarrowToHalf(value));
  if (dtype == DType::kBF16) return emulation::FromBf16(NarrowToBf16(value));
  return value;
}

// Half a unit in the last place of 1: 24, 11 and 8 bits.
inline double Epsilon(DType dtype) {
  if (dtype == DType::kF32) return 0x1p-24;
  return dtype == DType::kF16 ? 0x1p-11 : 0x1p-8;
}

inline std::vector<float> RandomValues(int64_t count, DType dtype,
                                       std::mt19937* random,
                                       float scale = 1.0f) {
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (float& value : values) value = Rounded(normal(*random), dtype);
  return values;
}

// Device memory with values in it.
class OnCard {
 public:
  OnCard(const std::vector<float>& values, DType dtype)
      : OnCard(Narrow(values, dtype).data(),
               static_cast<int64_t>(values.size()) * DTypeBytes(dtype)) {}
  template <typename T>
  static OnCard Of(const std::vector<T>& items) {
    return OnCard(items.data(), static_cast<int64_t>(items.size() * sizeof(T)));
  }
  // Memory that was never written.
  explicit OnCard(int64_t bytes) : bytes_(bytes) {
    EXPECT_TRUE(buffer_.Take(TestRuntime().get(), bytes, "a test").ok());
  }
  OnCard(const void* data, int64_t bytes) : OnCard(bytes) {
    EXPECT_EQ(TestRuntime()->CopyToDeviceAndWait(data, bytes, buffer_.data()),
              0);
  }

  void* data() const { return buffer_.data(); }
  Matrix View(int64_t rows, int64_t cols, DType dtype) const {
    return {buffer_.data(), rows, cols, dtype};
  }
  template <typename T>
  T* as() const {
    return buffer_.as<T>();
  }

  // What is there once everything is done.
  std::vector<char> Bytes() const {
    Runtime* runtime = TestRuntime().get();
    std::vector<char> bytes(bytes_);
    EXPECT_EQ(runtime->Synchronize(nullptr), 0);
    EXPECT_EQ(
        runtime->CopyToHost(buffer_.data(), bytes_, bytes.data(), nullptr), 0);
    EXPECT_EQ(runtime->Synchronize(nullptr), 0);
    return bytes;
  }
  std::vector<float> Values(DType dtype) const {
    const std::vector<char> bytes = Bytes();
    std::vector<float> values(bytes_ / DTypeBytes(dtype));
    for (size_t i = 0; i < values.size(); ++i) {
      if (dtype == DType::kF32) {
        std::memcpy(&values[i], bytes.data() + 4 * i, 4);
        continue;
      }
      uint16_t narrow = 0;
      std::memcpy(&narrow, bytes.data() + 2 * i, 2);
      values[i] = dtype == DType::kF16 ? emulation::FromHalf(narrow)
                                       : emulation::FromBf16(narrow);
    }
    return values;
  }

 private:
  int64_t bytes_;
  DeviceBuffer buffer_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_TEST_CARD_H_
