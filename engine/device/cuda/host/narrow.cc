#include "engine/device/cuda/host/narrow.h"

#include <cmath>
#include <cstring>

#include "engine/device/cuda/ops.h"
#include "engine/io/widen.h"

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

double UnitRoundoff(DType element) {
  if (element == DType::kF32) return 0x1p-24;
  return element == DType::kF16 ? 0x1p-11 : 0x1p-8;
}

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

uint8_t NarrowToE4m3(float value) {
  const uint32_t bits = Bits(value);
  const uint32_t sign = bits >> 24 & 0x80;
  const uint32_t size = bits & 0x7fffffff;
  if (size > 0x7f800000) return 0x7f;          // NaN
  if (size >= 0x43e00000) return sign | 0x7e;  // 448 and above
  if (size >= 0x3c800000)                      // 2^-6 and above
    return sign | ShiftRounding(size - 0x3c000000, 20);
  if (size <= 0x3a800000) return sign;  // up to 2^-10
  const int shift = 141 - static_cast<int>(size >> 23);
  return sign | ShiftRounding((size & 0x7fffff) | 0x800000, shift);
}

std::vector<char> NarrowRowsToE4m3(absl::Span<const float> values,
                                   int64_t cols) {
  const int64_t rows = static_cast<int64_t>(values.size()) / cols;
  std::vector<char> bytes(E4m3RowsBytes(rows, cols));
  char* const scales = bytes.data() + rows * cols;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = values.data() + r * cols;
    float largest = kLeastLargest;
    for (int64_t c = 0; c < cols; ++c)
      largest = std::fmax(largest, std::fabs(row[c]));
    const float inverse = kLargestE4m3 / largest;
    for (int64_t c = 0; c < cols; ++c)
      bytes[r * cols + c] = static_cast<char>(NarrowToE4m3(row[c] * inverse));
    const float scale = largest / kLargestE4m3;
    std::memcpy(scales + 4 * r, &scale, sizeof(scale));
  }
  return bytes;
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

std::vector<float> Widen(const void* bytes, int64_t count, DType element) {
  std::vector<float> values(count);
  if (element == DType::kF32) {
    std::memcpy(values.data(), bytes, 4 * count);
    return values;
  }
  std::vector<uint16_t> bits(count);
  std::memcpy(bits.data(), bytes, 2 * count);
  element == DType::kF16 ? WidenF16(bits.data(), count, values.data())
                         : WidenBF16(bits.data(), count, values.data());
  return values;
}

}  // namespace cuda
}  // namespace encoderd
