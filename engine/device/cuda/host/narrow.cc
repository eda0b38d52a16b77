#include "engine/device/cuda/host/narrow.h"

#include <cmath>
#include <cstring>

#include "engine/io/half_floats.h"

namespace encoderd {
namespace cuda {

double UnitRoundoff(DType element) {
  if (element == DType::kF32) return 0x1p-24;
  return element == DType::kF16 ? 0x1p-11 : 0x1p-8;
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
  if (values.empty()) return bytes;
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
