#include "engine/io/half_floats.h"

#include <algorithm>
#include <bit>

namespace encoderd {
namespace {

constexpr uint32_t kExponentMask = 0x7f800000;

// Branch-free, so that the loop vectorizes: the half's exponent and fraction
// land in a float whose exponent is 112 too small; the multiplication by 2^112
// puts that right and makes normals of subnormals. Infinities and NaNs come out
// as values from 65536 up and get their exponent set.
float FloatFromHalf(uint16_t half) {
  constexpr float kTwoTo112 = 5192296858534827628530496329220096.0f;
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t rest = static_cast<uint32_t>(half & 0x7fff) << 13;
  const float scaled = std::bit_cast<float>(rest) * kTwoTo112;
  uint32_t bits = std::bit_cast<uint32_t>(scaled);
  bits |= (half & 0x7c00) == 0x7c00 ? kExponentMask : 0;
  return std::bit_cast<float>(bits | sign);
}

// bits >> count, rounded to nearest, ties to even.
uint32_t ShiftRounding(uint32_t bits, int count) {
  const uint32_t half = 1u << (count - 1);
  return (bits + half - 1 + ((bits >> count) & 1)) >> count;
}

// Index of the first value whose exponent, under `mask`, is all ones; -1: none.
// Without a branch within a block, so that the loop vectorizes.
template <typename Value, typename Bits>
int64_t FindFullExponent(const Value* values, int64_t count, Bits mask) {
  constexpr int64_t kBlock = 4096;
  const auto exponent = [mask](Value value) -> Bits {
    return std::bit_cast<Bits>(value) & mask;
  };
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    Bits found = 0;
    for (int64_t i = begin; i < end; ++i)
      found |= exponent(values[i]) == mask ? ~Bits{0} : Bits{0};
    if (found == 0) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (exponent(values[i]) == mask) return i;
    }
  }
  return -1;
}

}  // namespace

void WidenF16(const uint16_t* in, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = FloatFromHalf(in[i]);
}

void WidenBF16(const uint16_t* in, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = std::bit_cast<float>(static_cast<uint32_t>(in[i]) << 16);
  }
}

uint16_t NarrowToBf16(float value) {
  if (value != value) return 0x7fff;
  return static_cast<uint16_t>(
      ShiftRounding(std::bit_cast<uint32_t>(value), 16));
}

uint16_t NarrowToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
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
  const uint32_t bits = std::bit_cast<uint32_t>(value);
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

int64_t FindNonFinite(const float* values, int64_t count) {
  return FindFullExponent(values, count, kExponentMask);
}

int64_t FindNonFiniteF16(const uint16_t* bits, int64_t count) {
  return FindFullExponent(bits, count, uint16_t{0x7c00});
}

int64_t FindNonFiniteBF16(const uint16_t* bits, int64_t count) {
  return FindFullExponent(bits, count, uint16_t{0x7f80});
}

}  // namespace encoderd
