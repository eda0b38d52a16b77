// bf16 on the host, for tests: the upper half of a float, rounded to nearest
// even.
#ifndef ENCODERD_TESTS_UNIT_ENGINE_DEVICE_BF16_H_
#define ENCODERD_TESTS_UNIT_ENGINE_DEVICE_BF16_H_

#include <cstdint>
#include <cstring>

namespace encoderd {

inline uint16_t ToBf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

inline float FromBf16(uint16_t narrow) {
  const uint32_t bits = static_cast<uint32_t>(narrow) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline float RoundToBf16(float value) { return FromBf16(ToBf16(value)); }

}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_DEVICE_BF16_H_
