#include "engine/io/half_floats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace encoderd {
namespace {

// The definition of a half, in double, where every step is exact.
double HalfValue(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const double fraction = half & 1023;
  const double size = exponent == 0
                          ? std::ldexp(fraction, -24)
                          : std::ldexp(1024 + fraction, exponent - 25);
  return half & 0x8000 ? -size : size;
}

TEST(HalfFloatsTest, EveryFiniteHalfKeepsItsValueAndSign) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    if ((half & 0x7c00) == 0x7c00) continue;
    float value;
    WidenF16(&half, 1, &value);
    ASSERT_EQ(value, HalfValue(half)) << bits;
    ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0) << bits;
  }
}

TEST(HalfFloatsTest, EveryInfiniteOrNanHalfStaysOne) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    if ((half & 0x7c00) != 0x7c00) continue;
    float value;
    WidenF16(&half, 1, &value);
    ASSERT_EQ(std::isinf(value), (half & 0x3ff) == 0) << bits;
    ASSERT_EQ(std::isnan(value), (half & 0x3ff) != 0) << bits;
  }
}

TEST(HalfFloatsTest, Bfloat16IsTheUpperHalfOfAFloat) {
  const std::vector<uint16_t> in = {0x3f80, 0xc000, 0x0001, 0x7f7f};
  std::vector<float> out(4);
  WidenBF16(in.data(), 4, out.data());
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], -2.0f);
  EXPECT_EQ(out[2], std::ldexp(1.0f, -133));
  EXPECT_EQ(out[3], std::ldexp(255.0f, 120));
}

TEST(HalfFloatsTest, FindsEveryHalfThatIsNotFinite) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t values[] = {0x7bff, static_cast<uint16_t>(bits)};
    float value;
    WidenF16(&values[1], 1, &value);
    ASSERT_EQ(FindNonFiniteF16(values, 2), std::isfinite(value) ? -1 : 1);
    WidenBF16(&values[1], 1, &value);
    ASSERT_EQ(FindNonFiniteBF16(values, 2), std::isfinite(value) ? -1 : 1);
  }
  std::vector<uint16_t> many(10000, 0x7bff);
  many[9999] = 0x7c00;
  EXPECT_EQ(FindNonFiniteF16(many.data(), 10000), 9999);
  EXPECT_EQ(FindNonFiniteF16(many.data(), 9999), -1);
}

TEST(HalfFloatsTest, FindsTheFirstValueThatIsNotFinite) {
  std::vector<float> values(10000, std::numeric_limits<float>::max());
  EXPECT_EQ(FindNonFinite(values.data(), 10000), -1);
  EXPECT_EQ(FindNonFinite(values.data(), 0), -1);
  values[9999] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(FindNonFinite(values.data(), 10000), 9999);
  EXPECT_EQ(FindNonFinite(values.data(), 9999), -1);
  values[4096] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(FindNonFinite(values.data(), 10000), 4096);
}

}  // namespace
}  // namespace encoderd
