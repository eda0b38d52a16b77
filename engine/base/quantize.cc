#include "engine/base/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace encoderd {
namespace {

void WriteLittleEndian(uint32_t bits, int bytes, uint8_t* out) {
  for (int i = 0; i < bytes; ++i) {
    out[i] = static_cast<uint8_t>(bits >> (8 * i));
  }
}

// flip: 0x80 turns a byte from 0..255 into the signed one that is 128 less.
uint8_t ToByte(float value, float minimum, float step, uint8_t flip) {
  const float place = std::floor((value - minimum) / step);
  const auto byte = static_cast<uint8_t>(std::clamp(place, 0.0f, 255.0f));
  return byte ^ flip;
}

float WriteBytes(const ByteRanges& ranges, absl::Span<const float> values,
                 uint8_t flip, uint8_t* bytes) {
  if (!ranges.empty()) {
    for (size_t i = 0; i < values.size(); ++i) {
      bytes[i] = ToByte(values[i], ranges.minimum[i], ranges.step[i], flip);
    }
    return 0;
  }
  float largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::fabs(value));
  }
  // 2 m / 255 without the overflow of 2 m.
  const float step = largest / 127.5f;
  for (size_t i = 0; i < values.size(); ++i) {
    bytes[i] = ToByte(values[i], -largest, step == 0 ? 1.0f : step, flip);
  }
  return step;
}

void WriteBits(absl::Span<const float> values, uint8_t flip, uint8_t* bytes) {
  std::fill_n(bytes, FormatBytes(VectorFormat::kUbinary, values.size()), flip);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 0) bytes[i / 8] ^= static_cast<uint8_t>(0x80 >> (i % 8));
  }
}

}  // namespace

int64_t FormatBytes(VectorFormat format, int64_t count) {
  switch (format) {
    case VectorFormat::kFloat32:
      return 4 * count;
    case VectorFormat::kFloat16:
      return 2 * count;
    case VectorFormat::kInt8:
    case VectorFormat::kUint8:
      return count;
    case VectorFormat::kBinary:
    case VectorFormat::kUbinary:
      return (count + 7) / 8;
  }
  return 0;
}

ByteRanges ByteRanges::Make(absl::Span<const float> minimum,
                            absl::Span<const float> maximum) {
  ByteRanges ranges;
  ranges.minimum.assign(minimum.begin(), minimum.end());
  ranges.step.resize(minimum.size());
  for (size_t i = 0; i < minimum.size(); ++i) {
    const float step = (maximum[i] - minimum[i]) / 255.0f;
    ranges.step[i] = step == 0 ? 1.0f : step;  // a denormal difference
  }
  return ranges;
}

float WriteVector(VectorFormat format, const ByteRanges& ranges,
                  absl::Span<const float> values, uint8_t* bytes) {
  switch (format) {
    case VectorFormat::kFloat32:
      for (size_t i = 0; i < values.size(); ++i) {
        WriteLittleEndian(std::bit_cast<uint32_t>(values[i]), 4, bytes + 4 * i);
      }
      return 0;
    case VectorFormat::kFloat16:
      for (size_t i = 0; i < values.size(); ++i) {
        WriteLittleEndian(ToFloat16(values[i]), 2, bytes + 2 * i);
      }
      return 0;
    case VectorFormat::kInt8:
      return WriteBytes(ranges, values, 0x80, bytes);
    case VectorFormat::kUint8:
      return WriteBytes(ranges, values, 0, bytes);
    case VectorFormat::kBinary:
      WriteBits(values, 0x80, bytes);
      return 0;
    case VectorFormat::kUbinary:
      WriteBits(values, 0, bytes);
      return 0;
  }
  return 0;
}

uint16_t ToFloat16(float value) {
  constexpr uint32_t kLargest = 0x477FE000;         // 65504
  constexpr uint32_t kSmallestNormal = 0x38800000;  // 2^-14
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= kLargest) return sign | 0x7BFF;
  if (magnitude < kSmallestNormal) {
    // A half's subnormals are multiples of 2^-24, the unit in the last place of
    // 0.5: the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    magnitude = std::bit_cast<uint32_t>(shifted) - 0x3F000000;
    return static_cast<uint16_t>(sign | magnitude);
  }
  // 13 bits fewer, nearest, ties to even; the exponent's bias from 127 to 15. A
  // carry out of the fraction is the next exponent, as it should be.
  magnitude += 0xFFF + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((magnitude >> 13) - (112 << 10)));
}

}  // namespace encoderd
