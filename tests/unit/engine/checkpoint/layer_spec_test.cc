#include "engine/checkpoint/layer_spec.h"

#include <gtest/gtest.h>

#include <cmath>

namespace encoderd {
namespace {

TEST(RotationTest, TurnsPairIByThetaToTheMinusTwoIOverDims) {
  const RotationRows rows = RowsOf({.theta = 10000, .dims = 8}, 100);
  ASSERT_EQ(rows.cos.rows, 100);
  ASSERT_EQ(rows.cos.cols, 4);
  ASSERT_EQ(rows.sin.cols, 4);
  for (int64_t p = 0; p < 100; ++p) {
    for (int64_t i = 0; i < 4; ++i) {
      const double angle = static_cast<double>(p) *
                           std::pow(10000.0, -2.0 * static_cast<double>(i) / 8);
      EXPECT_NEAR(rows.cos.Row(p)[i], std::cos(angle), 1e-5);
      EXPECT_NEAR(rows.sin.Row(p)[i], std::sin(angle), 1e-5);
    }
  }
}

TEST(RotationTest, LeavesPositionZeroAsItIs) {
  const RotationRows rows = RowsOf({.theta = 160000, .dims = 64}, 1);
  for (int64_t i = 0; i < 32; ++i) {
    EXPECT_EQ(rows.cos.Row(0)[i], 1.0f);
    EXPECT_EQ(rows.sin.Row(0)[i], 0.0f);
  }
}

}  // namespace
}  // namespace encoderd
