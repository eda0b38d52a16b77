#include "engine/base/tensor.h"

#include <gtest/gtest.h>

#include <vector>

namespace encoderd {
namespace {

TEST(HostTableTest, HalvesWidenToTheFloatsThatTheyAre) {
  HostTable table(2, 2, DType::kF16);
  table.halves = {0x3c00, 0xc000, 0x0001, 0x7bff};
  HostMatrix wide = table.Widened();
  EXPECT_EQ(wide.rows, 2);
  EXPECT_EQ(wide.cols, 2);
  EXPECT_EQ(wide.data, (std::vector<float>{1, -2, 0x1p-24f, 65504}));
  table.dtype = DType::kBF16;
  table.halves = {0x3f80, 0xc000, 0x0001, 0x7f7f};
  wide = table.Widened();
  EXPECT_EQ(wide.data, (std::vector<float>{1, -2, 0x1p-133f, 0xffp120f}));
}

TEST(HostTableTest, AMatrixIsATableOfFloatsAndMovesIntoOne) {
  HostMatrix matrix = {1, 2, {3, 4}};
  const void* const values = matrix.data.data();
  const HostTable table = std::move(matrix);
  EXPECT_EQ(table.dtype, DType::kF32);
  EXPECT_EQ(table.data(), values);
  EXPECT_EQ(table.Widened().data, (std::vector<float>{3, 4}));
}

TEST(HostTableTest, HoldsZerosOfItsDtypeAlone) {
  const HostTable floats(3, 2, DType::kF32), halves(3, 2, DType::kBF16);
  EXPECT_EQ(floats.floats, std::vector<float>(6));
  EXPECT_TRUE(floats.halves.empty());
  EXPECT_EQ(halves.halves, std::vector<uint16_t>(6));
  EXPECT_TRUE(halves.floats.empty());
}

}  // namespace
}  // namespace encoderd
