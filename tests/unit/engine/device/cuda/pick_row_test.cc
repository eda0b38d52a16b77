// Picking rows of a matrix by a list.
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

// At the widths of models, of one block's threads and past them.
TEST(PickRowsOpTest, CopiesTheRowsOfAList) {
  std::mt19937 random(1);
  const std::vector<int32_t> list = {4, 0, 4, 8, 1};
  const OnCard list_card = OnCard::Of(list);
  for (const DType dtype : kDTypes) {
    for (const int64_t cols : {8, 264, 768, 2048, 4096}) {
      const auto x = RandomValues(9 * cols, dtype, &random);
      const OnCard x_card(x, dtype);
      const OnCard y(5 * cols * DTypeBytes(dtype));
      PickRowsOp op;
      op.x = x_card.View(9, cols, dtype);
      op.rows = list_card.as<int32_t>();
      op.row_count = 5;
      op.y = y.View(5, cols, dtype);
      ASSERT_EQ(Start(op, nullptr), 0);
      std::vector<float> want;
      for (const int32_t row : list) {
        want.insert(want.end(), x.begin() + row * cols,
                    x.begin() + (row + 1) * cols);
      }
      EXPECT_EQ(y.Values(dtype), want) << DTypeName(dtype) << ", " << cols;
    }
  }
}

TEST(PickRowsOpTest, DoesNothingForNoRows) {
  EXPECT_EQ(Start(PickRowsOp(), nullptr), 0);
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
