#include "engine/device/cuda/narrow.h"

#include <cmath>
#include <cstring>

namespace encoderd {
namespace cuda {
namespace {

uint32_t Bits(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// bits >> count, rounded to nearest, ties to even.
uint32_t ShiftRounding(uint32_t bits, int count) {
  const uint32_t half = 1u << (count - 1);
  return (bits + half - 1 + ((bits >> count) & 1)) >> count;
}

}  // namespace

uint16_t NarrowToBf16(float value) {
  if (std::isnan(value)) return 0x7fff;
  return static_cast<uint16_t>(ShiftRounding(Bits(value), 16));
}

uint16_t NarrowToHalf(float value) {
  const uint32_t bits = Bits(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t size = bits & 0x7fffffff;
  if (size > 0x7f800000) return 0x7fff;          // NaN
  if (size >= 0x477ff000) return sign | 0x7c00;  // 65520 and above
  if (size >= 0x38800000)                        // 2^-14 and above
    return sign | ShiftRounding(size - 0x38000000, 13);
  if (size <= 0x33000000) return sign;  // up to 2^-25
  const int shift = 126 - static_cast<int>(size >> 23);
  return sign | ShiftRounding((size & 0x7fffff) | 0x800000, shift);
}

std::vector<char> Narrow(absl::Span<const float> values, DType dtype) {
  std::vector<char> bytes(values.size() * DTypeBytes(dtype));
  if (dtype == DType::kF32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  auto* to = reinterpret_cast<uint16_t*>(bytes.data());
  for (size_t i = 0; i < values.size(); ++i) {
    to[i] = dtype == DType::kBF16 ? NarrowToBf16(values[i])
                                  : NarrowToHalf(values[i]);
  }
  return bytes;
}

}  // namespace cuda
}  // namespace encoderd
