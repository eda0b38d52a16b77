#include "engine/device/op_costs.h"

#include <gtest/gtest.h>

namespace encoderd {
namespace {

AttentionOp Attention(Reach reach) {
  AttentionOp op;
  op.reach = reach;
  op.context = {nullptr, 10, 64, DType::kF32};
  return op;
}

TEST(OpCostsTest, CountsEveryKeyOfAttentionWithoutALimit) {
  const OpTime cost = CostOf(Attention(Reach()), {3, 7});
  EXPECT_EQ(cost.flops, 4 * (9 + 49) * 64);
  EXPECT_EQ(cost.bytes, 4 * 10 * 64 * 4);
}

TEST(OpCostsTest, CountsTheSequencesThatAnOpHas) {
  AttentionOp op = Attention(Reach());
  op.first_sequence = 1;
  op.sequence_count = 2;
  EXPECT_EQ(CostOf(op, {3, 7, 2, 5}).flops, 4 * (49 + 4) * 64);
}

TEST(OpCostsTest, CountsTheKeysOfTheOneRowOfEachSequence) {
  const int32_t rows[] = {2, 0, 6};
  AttentionOp op = Attention(Reach());
  op.needed_rows = rows;
  EXPECT_EQ(CostOf(op, {3, 1, 7}).flops, 4 * (3 + 1 + 7) * 64);
  EXPECT_EQ(CostOf(op, {3, 1, 7}).bytes, 2 * (11 + 3) * 64 * 4);
  op.reach = {1, 0};
  EXPECT_EQ(CostOf(op, {3, 1, 7}).flops, 4 * (2 + 1 + 2) * 64);
  op.reach = {-1, 3};
  EXPECT_EQ(CostOf(op, {7, 1, 7}).flops, 4 * (6 + 1 + 7) * 64);
}

TEST(OpCostsTest, CountsOnlyTheKeysWithinReach) {
  for (const Reach& reach :
       {Reach{-1, 0}, Reach{0, 0}, Reach{2, 1}, Reach{64, 3}, Reach{1, -1}}) {
    for (const int32_t n : {0, 1, 2, 7}) {
      int pairs = 0;
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
          pairs += (reach.left < 0 || i - j <= reach.left) &&
                   (reach.right < 0 || j - i <= reach.right);
        }
      }
      EXPECT_EQ(PairsWithin(reach, n), pairs)
          << reach.left << ", " << reach.right << ", " << n;
      EXPECT_EQ(CostOf(Attention(reach), {n}).flops, 4 * pairs * 64);
    }
  }
}

}  // namespace
}  // namespace encoderd
