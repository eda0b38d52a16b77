// Rotation of Q and K by position, against its formula in double.
#include <cmath>

#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

struct Case {
  int32_t heads;
  int32_t head_size;
  int32_t pairs;

  int64_t hidden() const { return int64_t{heads} * head_size; }
};

// Tables of angles position * 10^(-i / pairs), as rotary models have them.
struct Tables {
  Tables(int32_t positions, int32_t pairs) {
    for (int32_t p = 0; p < positions; ++p) {
      for (int32_t i = 0; i < pairs; ++i) {
        const double angle = p * std::pow(10.0, -i / double{1.0 * pairs});
        cos.push_back(static_cast<float>(std::cos(angle)));
        sin.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
  std::vector<float> cos, sin;
};

constexpr int32_t kPositions = 40;

std::vector<float> RunRotate(const std::vector<float>& qkv,
                             const std::vector<int32_t>& position_ids,
                             const Case& c, DType dtype) {
  const Tables tables(kPositions, c.pairs);
  const OnCard on_card(qkv, dtype), ids = OnCard::Of(position_ids);
  const OnCard cos(tables.cos, DType::kF32), sin(tables.sin, DType::kF32);
  RotateOp op;
  op.qkv = {on_card.data(), static_cast<int64_t>(position_ids.size()),
            3 * c.hidden(), dtype};
  op.heads = c.heads;
  op.head_size = c.head_size;
  op.cos = cos.as<float>();
  op.sin = sin.as<float>();
  op.pairs = c.pairs;
  op.position_ids = ids.as<int32_t>();
  EXPECT_EQ(Start(op, nullptr), 0);
  return on_card.Values(dtype);
}

// A result is rounded once; products and their sum in float add less than two
// units of the larger.
void Check(const Case& c, int32_t rows, DType dtype, std::mt19937* random) {
  const int64_t hidden = c.hidden();
  const auto qkv = RandomValues(rows * 3 * hidden, dtype, random);
  std::vector<int32_t> ids(rows);
  for (int32_t& id : ids) id = static_cast<int32_t>((*random)() % kPositions);
  const std::vector<float> got = RunRotate(qkv, ids, c, dtype);
  const Tables tables(kPositions, c.pairs);
  for (int64_t at = 0; at < rows * 3 * hidden; ++at) {
    const int64_t row = at / (3 * hidden), column = at % (3 * hidden);
    const auto i = static_cast<int32_t>(column % c.head_size);
    if (column >= 2 * hidden || i >= 2 * c.pairs) {
      ASSERT_EQ(got[at], qkv[at]) << "of V or behind the pairs: " << column;
      continue;
    }
    const bool low = i < c.pairs;
    const int64_t angle = ids[row] * c.pairs + i % c.pairs;
    const double other = qkv[low ? at + c.pairs : at - c.pairs];
    const double own = double{qkv[at]} * tables.cos[angle];
    const double turned = (low ? -other : other) * tables.sin[angle];
    ASSERT_TRUE(std::fabs(got[at] - (own + turned)) <=
                std::fabs(own + turned) * Epsilon(dtype) +
                    (std::fabs(own) + std::fabs(turned)) * 0x1p-23)
        << DTypeName(dtype) << ", " << c.heads << " heads of " << c.head_size
        << ", " << c.pairs << " pairs, row " << row << ", column " << column
        << ": " << got[at] << " for " << own + turned;
  }
}

TEST(RotateOpTest, EqualsItsFormulaAtEveryHeadSize) {
  std::mt19937 random(1);
  for (const DType dtype : kDTypes) {
    for (const int32_t head_size : {8, 16, 24, 32, 40, 64, 72, 96, 120, 128})
      Check({3, head_size, head_size / 2}, 7, dtype, &random);
  }
  for (const int32_t head_size : {1, 2, 5, 25, 127})
    Check({8, head_size, head_size / 2}, 7, DType::kF32, &random);
}

TEST(RotateOpTest, LeavesColumnsBehindThePairsAsTheyAre) {
  std::mt19937 random(2);
  for (const DType dtype : kDTypes) {
    for (const int32_t pairs : {0, 1, 3, 8, 16, 24, 31})
      Check({2, 64, pairs}, 5, dtype, &random);
  }
}

TEST(RotateOpTest, TakesEveryNumberOfHeadsAndRows) {
  std::mt19937 random(3);
  for (const DType dtype : kDTypes) {
    for (const int32_t heads : {1, 2, 3, 5, 12, 16})
      Check({heads, 64, 32}, 9, dtype, &random);
    for (const int32_t rows : {1, 2, 10, 11, 33})
      Check({12, 16, 8}, rows, dtype, &random);
  }
}

TEST(RotateOpTest, TakesRowsThatAreMoreThanABlock) {
  std::mt19937 random(4);
  for (const DType dtype : kDTypes) {
    Check({32, 128, 64}, 2, dtype, &random);
    Check({128, 8, 4}, 2, dtype, &random);  // 4 pairs: one a thread
    Check({64, 24, 12}, 3, dtype, &random);
  }
}

TEST(RotateOpTest, GivesARowTheSameBitsInAnyBatch) {
  std::mt19937 random(5);
  const int32_t rows = 11;
  for (const DType dtype : kDTypes) {
    for (const Case& c : {Case{3, 32, 16}, Case{2, 24, 10}}) {
      const int64_t cols = 3 * c.hidden();
      const auto qkv = RandomValues(rows * cols, dtype, &random);
      std::vector<int32_t> ids(rows);
      for (int32_t& id : ids) id = static_cast<int32_t>(random() % kPositions);
      const std::vector<float> want = RunRotate(qkv, ids, c, dtype);
      for (int batch = 0; batch < 200; ++batch) {
        std::vector<float> some;
        std::vector<int32_t> which(1 + random() % 9), some_ids;
        for (int32_t& row : which) {
          row = static_cast<int32_t>(random() % rows);
          some_ids.push_back(ids[row]);
          some.insert(some.end(), qkv.begin() + row * cols,
                      qkv.begin() + (row + 1) * cols);
        }
        const std::vector<float> got = RunRotate(some, some_ids, c, dtype);
        for (size_t i = 0; i < which.size(); ++i) {
          ASSERT_EQ(std::memcmp(got.data() + i * cols,
                                want.data() + which[i] * cols, 4 * cols),
                    0)
              << DTypeName(dtype) << ", batch " << batch;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
