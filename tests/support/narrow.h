// Half, Bf16 and e4m3 to and from float on the host, to nearest, ties to even.
#ifndef ENCODERD_TESTS_SUPPORT_NARROW_H_
#define ENCODERD_TESTS_SUPPORT_NARROW_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace encoderd {
namespace emulation {

inline float FloatOfBits(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t BitsOfFloat(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float FromBf16(uint16_t bits) {
  return FloatOfBits(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t ToBf16(float value) {
  uint32_t bits = BitsOfFloat(value);
  if (std::isnan(value)) return 0x7fff;
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

inline float FromHalf(uint16_t bits) {
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = bits >> 10 & 0x1f;
  const auto fraction = static_cast<float>(bits & 0x3ff);
  if (exponent == 31) return fraction != 0 ? NAN : sign * HUGE_VALF;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024.0f + fraction, exponent - 25);
}

inline uint16_t ToHalf(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return 0x7fff;
  const float size = std::fabs(value);
  if (size == 0.0f) return sign;
  if (size >= 65520.0f) return sign | 0x7c00;  // rounds to infinity
  int exponent = 0;
  std::frexp(size, &exponent);  // size in [2^(exponent-1), 2^exponent)
  const int unit = std::max(exponent - 11, -24);
  // Exact until nearbyint, which rounds half to even.
  const auto count =
      static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -unit)));
  const int shift = unit + 24;  // 0: subnormal, or the first binade above
  return static_cast<uint16_t>(sign + count +
                               (static_cast<uint32_t>(shift) << 10));
}

inline float FromE4m3(uint8_t bits) {
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  const int exponent = bits >> 3 & 0xf;
  const auto fraction = static_cast<float>(bits & 7);
  if ((bits & 0x7f) == 0x7f) return NAN;  // the only one; no infinities
  if (exponent == 0) return sign * std::ldexp(fraction, -9);
  return sign * std::ldexp(8.0f + fraction, exponent - 10);
}

inline uint8_t ToE4m3(float value) {
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
  if (std::isnan(value)) return 0x7f;
  const float size = std::fabs(value);
  if (size == 0.0f) return sign;
  if (size >= 448.0f) return sign | 0x7e;
  int exponent = 0;
  std::frexp(size, &exponent);  // size in [2^(exponent-1), 2^exponent)
  const int unit = std::max(exponent - 4, -9);
  const auto count =
      static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -unit)));
  const auto shift = static_cast<uint32_t>(unit + 9);
  return static_cast<uint8_t>(sign + count + (shift << 3));
}

}  // namespace emulation
}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_NARROW_H_
