#include "engine/base/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace encoderd {
namespace {

float Widened(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const auto fraction = static_cast<float>(half & 1023);
  const float magnitude = exponent == 0
                              ? std::ldexp(fraction, -24)
                              : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

std::vector<uint8_t> Write(VectorFormat format, std::vector<float> values,
                           const ByteRanges& ranges = {},
                           float* scale = nullptr) {
  std::vector<uint8_t> bytes(FormatBytes(format, values.size()), 0xAA);
  const float step = WriteVector(format, ranges, values, bytes.data());
  if (scale != nullptr) *scale = step;
  return bytes;
}

TEST(QuantizeTest, RoundsToTheNearestHalfAndTiesToTheEvenOne) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const auto next = static_cast<uint16_t>(bits + 1);
    const float low = Widened(half);
    const float middle = (low + Widened(next)) / 2;  // exact: a bit more
    ASSERT_EQ(ToFloat16(low), half);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 0.0f)), half);
    ASSERT_EQ(ToFloat16(middle), half % 2 == 0 ? half : next);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 1e6f)), next);
    ASSERT_EQ(ToFloat16(-middle), 0x8000 | ToFloat16(middle));
  }
}

TEST(QuantizeTest, HalfFloatsSaturateInsteadOfBecomingInfinite) {
  for (const float large : {65504.0f, 65520.0f, 1e30f}) {
    EXPECT_EQ(ToFloat16(large), 0x7BFF);
    EXPECT_EQ(ToFloat16(-large), 0xFBFF);
  }
}

TEST(QuantizeTest, HalfFloatsKeepTheSignOfZero) {
  EXPECT_EQ(ToFloat16(0.0f), 0);
  EXPECT_EQ(ToFloat16(-0.0f), 0x8000);
}

// A step that is too small for a float has all values at one of the ends.
TEST(QuantizeTest, ARangeOfADenormalPutsValuesAtItsEnds) {
  const float least = std::numeric_limits<float>::denorm_min();
  const ByteRanges ranges = ByteRanges::Make({0, 0, 0}, {least, least, least});
  EXPECT_EQ(Write(VectorFormat::kUint8, {-0.7f, 0, 0.7f}, ranges),
            (std::vector<uint8_t>{0, 0, 255}));
}

TEST(QuantizeTest, HalfFloatsKeepNotANumber) {
  EXPECT_EQ(ToFloat16(std::nanf("")), 0x7FFF);
  EXPECT_EQ(ToFloat16(-std::nanf("")), 0x7FFF);
}

TEST(QuantizeTest, BytesOutsideTheRangeBecomeItsEnds) {
  const ByteRanges ranges = ByteRanges::Make({-1, -1, -1}, {1, 1, 1});
  const std::vector<float> values = {-7, 0, 1e38f};
  EXPECT_EQ(Write(VectorFormat::kUint8, values, ranges),
            (std::vector<uint8_t>{0, 127, 255}));
  EXPECT_EQ(Write(VectorFormat::kInt8, values, ranges),
            (std::vector<uint8_t>{0x80, 0xFF, 0x7F}));
}

TEST(QuantizeTest, TheOwnRangeSaysItsStepAndGivesTheValuesBackWithinHalfOfIt) {
  const std::vector<float> values = {0.25f, -1.0f, 0.999f, 0.0f, -0.5f};
  float scale = 0;
  const auto bytes = Write(VectorFormat::kUint8, values, {}, &scale);
  EXPECT_FLOAT_EQ(scale, 2.0f / 255);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR((bytes[i] - 127.0f) * scale, values[i], 0.5001f * scale);
  }
}

TEST(QuantizeTest, AZeroVectorHasNoStep) {
  float scale = -1;
  EXPECT_EQ(Write(VectorFormat::kUint8, {0.0f, -0.0f}, {}, &scale),
            (std::vector<uint8_t>{0, 0}));
  EXPECT_EQ(scale, 0);
}

TEST(QuantizeTest, TheLargestFloatsHaveAStepToo) {
  const float most = std::numeric_limits<float>::max();
  float scale = 0;
  EXPECT_EQ(Write(VectorFormat::kUint8, {most, -most}, {}, &scale),
            (std::vector<uint8_t>{255, 0}));
  EXPECT_TRUE(std::isfinite(scale));
}

TEST(QuantizeTest, OnlyRangesSetAheadLeaveTheStepUnsaid) {
  float scale = -1;
  Write(VectorFormat::kInt8, {1.0f}, ByteRanges::Make({-1}, {1}), &scale);
  EXPECT_EQ(scale, 0);
  Write(VectorFormat::kBinary, {1.0f}, {}, &scale);
  EXPECT_EQ(scale, 0);
}

TEST(QuantizeTest, BitsBeginAtTheTopAndTheLastByteIsFilledWithZeros) {
  const std::vector<float> values = {1, 0, -0.0f, 1, -1, 0, 0, 1, 1, -1};
  EXPECT_EQ(Write(VectorFormat::kUbinary, values),
            (std::vector<uint8_t>{0x91, 0x80}));
  EXPECT_EQ(Write(VectorFormat::kBinary, values),
            (std::vector<uint8_t>{0x11, 0x00}));
}

}  // namespace
}  // namespace encoderd
