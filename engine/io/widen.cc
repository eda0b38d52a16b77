#include "engine/io/widen.h"

#include <algorithm>
#include <cstring>

namespace encoderd {
namespace {

constexpr uint32_t kExponentMask = 0x7f800000;

float FloatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Branch-free, so that the loop vectorises: the half's exponent and fraction
// land in a float whose exponent is 112 too small; the multiplication by 2^112
// puts that right and makes normals of subnormals. Infinities and NaNs come out
// as values from 65536 up and get their exponent set.
float FloatFromHalf(uint16_t half) {
  constexpr float kTwoTo112 = 5192296858534827628530496329220096.0f;
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t rest = static_cast<uint32_t>(half & 0x7fff) << 13;
  const float scaled = FloatFromBits(rest) * kTwoTo112;
  uint32_t bits;
  std::memcpy(&bits, &scaled, sizeof(bits));
  bits |= (half & 0x7c00) == 0x7c00 ? kExponentMask : 0;
  return FloatFromBits(bits | sign);
}

}  // namespace

void WidenF16(const uint16_t* in, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = FloatFromHalf(in[i]);
}

void WidenBF16(const uint16_t* in, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = FloatFromBits(static_cast<uint32_t>(in[i]) << 16);
  }
}

int64_t FindNonFinite(const float* values, int64_t count) {
  constexpr int64_t kBlock = 4096;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    uint32_t largest = 0;
    for (int64_t i = begin; i < end; ++i) {
      uint32_t bits;
      std::memcpy(&bits, values + i, sizeof(bits));
      largest = std::max(largest, bits & kExponentMask);
    }
    if (largest != kExponentMask) continue;
    for (int64_t i = begin; i < end; ++i) {
      uint32_t bits;
      std::memcpy(&bits, values + i, sizeof(bits));
      if ((bits & kExponentMask) == kExponentMask) return i;
    }
  }
  return -1;
}

}  // namespace encoderd
