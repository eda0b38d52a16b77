#include "engine/base/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/io/half_floats.h"

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
    // Too narrow for a step: one that sends other values to the ends.
    ranges.step[i] = step == 0 ? std::numeric_limits<float>::min() : step;
  }
  return ranges;
}

float WriteVector(VectorFormat format, const ByteRanges& ranges,
                  absl::Span<const float> values, uint8_t* bytes) {
  switch (format) {
    case VectorFormat::kFloat32:
      if constexpr (std::endian::native == std::endian::little) {
        if (!values.empty()) {  // else there may be no data to point at
          std::memcpy(bytes, values.data(), 4 * values.size());
        }
        return 0;
      }
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
  constexpr float kLargest = 65504;
  return NarrowToHalf(std::clamp(value, -kLargest, kLargest));
}

}  // namespace encoderd
