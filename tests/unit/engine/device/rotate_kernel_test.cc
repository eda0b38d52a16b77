// Rotary positions of each instruction set against double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/unit/engine/device/kernel_test.h"

namespace encoderd {
namespace cpu {
namespace {

struct Heads {
  int64_t heads = 0;
  int64_t size = 0;
  int64_t pairs = 0;
};

class RotateKernelTest : public KernelTest {
 protected:
  // Tables of kPositions angles a pair.
  void MakeTables(int64_t pairs) {
    cos_.clear();
    sin_.clear();
    for (const float angle : Random(kPositions * pairs, 3.0f)) {
      cos_.push_back(std::cos(angle));
      sin_.push_back(std::sin(angle));
    }
  }

  // qkv after the rotation of its rows by `positions`.
  std::string Rotated(const Heads& heads, std::string qkv,
                      const std::vector<int32_t>& positions) const {
    const auto rows = static_cast<int64_t>(positions.size());
    RotateOp op;
    op.qkv = View(qkv, rows);
    op.heads = static_cast<int32_t>(heads.heads);
    op.head_size = static_cast<int32_t>(heads.size);
    op.cos = cos_.data();
    op.sin = sin_.data();
    op.pairs = static_cast<int32_t>(heads.pairs);
    op.position_ids = positions.data();
    Run(op, nullptr);
    return qkv;
  }

  void ExpectRotation(const Heads& heads) {
    MakeTables(heads.pairs);
    const std::vector<int32_t> positions = {0, 7, 3, 7, kPositions - 1};
    const int64_t hidden = heads.heads * heads.size, pairs = heads.pairs;
    std::vector<float> qkv =
        Random(static_cast<int64_t>(positions.size()) * 3 * hidden, 1.0f);
    const std::string bytes = Elements(&qkv);
    const std::vector<float> got = Floats(Rotated(heads, bytes, positions));
    for (size_t at = 0; at < got.size(); ++at) {
      const auto column = static_cast<int64_t>(at) % (3 * hidden);
      const int64_t d = column % heads.size;
      if (column >= 2 * hidden || d >= 2 * pairs) {
        ASSERT_EQ(got[at], qkv[at]) << "column " << column;
        continue;
      }
      const int64_t row = static_cast<int64_t>(at) / (3 * hidden);
      const int64_t angle = positions[row] * pairs + d % pairs;
      const double other =
          d < pairs ? -double{qkv[at + pairs]} : double{qkv[at - pairs]};
      ASSERT_NEAR(got[at], qkv[at] * double{cos_[angle]} + other * sin_[angle],
                  tolerance())
          << "row " << row << ", column " << column;
    }
  }

  static constexpr int32_t kPositions = 9;
  std::vector<float> cos_, sin_;
};

TEST_P(RotateKernelTest, RotatesWholeHeadsOfAnySize) {
  for (const int64_t size : {2, 6, 32, 34, 64, 80, 96, 128})
    ExpectRotation({3, size, size / 2});
}

TEST_P(RotateKernelTest, LeavesColumnsAfterThePairsAsTheyAre) {
  for (const int64_t size : {3, 25, 64}) {
    for (const int64_t pairs : {int64_t{0}, int64_t{1}, size / 4, size / 2})
      ExpectRotation({2, size, pairs});
  }
}

TEST_P(RotateKernelTest, KeepsPositionZeroBitForBit) {
  const Heads heads = {2, 50, 25};
  cos_.assign(heads.pairs, 1.0f);
  sin_.assign(heads.pairs, 0.0f);
  std::vector<float> qkv = Random(300, 1.0f);
  const std::string bytes = Elements(&qkv);
  EXPECT_EQ(Rotated(heads, bytes, {0}), bytes);
}

TEST_P(RotateKernelTest, GivesARowTheSameBitsInAnyBatch) {
  const Heads heads = {2, 54, 27};
  MakeTables(heads.pairs);
  const std::vector<int32_t> positions = {4, 0, 8, 4};
  std::vector<float> qkv = Random(4 * 3 * 108, 1.0f);
  const std::string bytes = Elements(&qkv);
  const std::string all = Rotated(heads, bytes, positions);
  const size_t row = bytes.size() / 4;
  for (size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(Rotated(heads, bytes.substr(r * row, row), {positions[r]}),
              all.substr(r * row, row));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RotateKernelTest,
                         ::testing::ValuesIn(TestDevices()), KernelTestName);

}  // namespace
}  // namespace cpu
}  // namespace encoderd
