// The sum that LayerNorm keeps of what it normalizes: the residual stream of a
// model whose norms come first.
#include <cmath>

#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int64_t kRows = 5;  // not a multiple of a block's

// What the sum's memory is.
enum class Place { kApart, kX, kResidual };

struct Norm {
  Norm(int32_t hidden, std::mt19937* random)
      : gain(RandomValues(hidden, DType::kF32, random), DType::kF32),
        bias(RandomValues(hidden, DType::kF32, random), DType::kF32) {}
  NormRef ref() const { return {gain.as<float>(), bias.as<float>(), 1e-12f}; }
  const OnCard gain, bias;
};

struct Rows {
  std::vector<float> sum, y;
};

// sum is empty where `place` is null. An empty residual: none.
Rows RunNorm(const std::vector<float>& x, const std::vector<float>& residual,
             const Norm& norm, int32_t hidden, DType dtype, const Place* place,
             std::vector<char>* quantized = nullptr) {
  const int64_t rows = static_cast<int64_t>(x.size()) / hidden;
  const OnCard x_card(x, dtype),
      residual_card(residual.empty() ? x : residual, dtype);
  const OnCard apart(rows * hidden * DTypeBytes(dtype));
  const OnCard y(rows * hidden * DTypeBytes(dtype));
  const OnCard codes(E4m3RowsBytes(rows, hidden));
  const auto matrix = [&](const OnCard& memory) {
    return Matrix{memory.data(), rows, hidden, dtype};
  };
  AddNormOp op;
  op.x = matrix(x_card);
  if (!residual.empty()) op.residual = matrix(residual_card);
  op.norm = norm.ref();
  op.y = matrix(y);
  if (quantized != nullptr) op.quantized = codes.data();
  const OnCard& sum = place == nullptr || *place == Place::kApart ? apart
                      : *place == Place::kX                       ? x_card
                                            : residual_card;
  if (place != nullptr) op.sum = matrix(sum);
  EXPECT_EQ(Start(op, nullptr), 0);
  if (quantized != nullptr) *quantized = codes.Bytes();
  return {place == nullptr ? std::vector<float>() : sum.Values(dtype),
          y.Values(dtype)};
}

TEST(NormSumTest, KeepsTheSumRoundedOnceAndNormalisesItUnrounded) {
  std::mt19937 random(1);
  for (const DType dtype : kDTypes) {
    for (const int32_t hidden : {8, 264, 384, 768, 1024, 1032, 2048, 4096}) {
      const Norm norm(hidden, &random);
      const auto x = RandomValues(kRows * hidden, dtype, &random);
      const auto residual = RandomValues(kRows * hidden, dtype, &random);
      const Rows without = RunNorm(x, residual, norm, hidden, dtype, nullptr);
      for (const Place place : {Place::kApart, Place::kX, Place::kResidual}) {
        const Rows got = RunNorm(x, residual, norm, hidden, dtype, &place);
        for (int64_t i = 0; i < kRows * hidden; ++i) {
          // Rounded once: the sum of two floats of `dtype` in float.
          ASSERT_EQ(got.sum[i], Rounded(x[i] + residual[i], dtype))
              << DTypeName(dtype) << ", " << hidden << ", value " << i;
        }
        EXPECT_EQ(got.y, without.y) << DTypeName(dtype) << ", " << hidden;
      }
    }
  }
}

TEST(NormSumTest, KeepsXItselfWhereThereIsNoResidual) {
  std::mt19937 random(4);
  for (const DType dtype : kDTypes) {
    for (const int32_t hidden : {8, 264, 768, 1032, 4096}) {
      const Norm norm(hidden, &random);
      const auto x = RandomValues(kRows * hidden, dtype, &random);
      const Rows without = RunNorm(x, {}, norm, hidden, dtype, nullptr);
      for (const Place place : {Place::kApart, Place::kX}) {
        const Rows got = RunNorm(x, {}, norm, hidden, dtype, &place);
        EXPECT_EQ(got.sum, x) << DTypeName(dtype) << ", " << hidden;
        EXPECT_EQ(got.y, without.y) << DTypeName(dtype) << ", " << hidden;
      }
    }
  }
}

TEST(NormSumTest, WritesTheSameRowsInE4m3) {
  std::mt19937 random(2);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const int32_t hidden : {16, 272, 1024, 4096}) {
      const Norm norm(hidden, &random);
      const auto x = RandomValues(kRows * hidden, dtype, &random);
      const auto residual = RandomValues(kRows * hidden, dtype, &random);
      std::vector<char> want, got;
      const Place place = Place::kResidual;
      const Rows without =
          RunNorm(x, residual, norm, hidden, dtype, nullptr, &want);
      const Rows with = RunNorm(x, residual, norm, hidden, dtype, &place, &got);
      EXPECT_EQ(with.y, without.y);
      EXPECT_EQ(got, want);
    }
  }
}

TEST(NormSumTest, GivesARowTheSameBitsInAnyBatch) {
  std::mt19937 random(3);
  const int32_t hidden = 272, rows = 11;
  const Norm norm(hidden, &random);
  const Place place = Place::kResidual;
  for (const DType dtype : kDTypes) {
    const auto x = RandomValues(rows * hidden, dtype, &random);
    const auto residual = RandomValues(rows * hidden, dtype, &random);
    const Rows all = RunNorm(x, residual, norm, hidden, dtype, &place);
    for (int batch = 0; batch < 200; ++batch) {
      std::vector<int32_t> which(1 + random() % 9);
      std::vector<float> some, some_residual, want_sum, want_y;
      const auto take = [&](const std::vector<float>& from, int32_t row,
                            std::vector<float>* to) {
        to->insert(to->end(), from.begin() + row * hidden,
                   from.begin() + (row + 1) * hidden);
      };
      for (int32_t& row : which) {
        row = static_cast<int32_t>(random() % rows);
        take(x, row, &some);
        take(residual, row, &some_residual);
        take(all.sum, row, &want_sum);
        take(all.y, row, &want_y);
      }
      const Rows got =
          RunNorm(some, some_residual, norm, hidden, dtype, &place);
      const size_t bytes = 4 * want_y.size();
      ASSERT_EQ(std::memcmp(got.sum.data(), want_sum.data(), bytes), 0);
      ASSERT_EQ(std::memcmp(got.y.data(), want_y.data(), bytes), 0);
    }
  }
}

// 1 / sqrt(inf) is 0: such a row would be the norm's bias. fp16 is infinite
// before that.
TEST(NormSumTest, ARowWhoseVarianceOverflowsIsNaNs) {
  std::mt19937 random(5);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int32_t hidden : {8, 264, 768, 1032, 4096}) {
      const Norm norm(hidden, &random);
      auto x = RandomValues(kRows * hidden, dtype, &random);
      const auto residual = RandomValues(kRows * hidden, dtype, &random);
      const Rows want = RunNorm(x, residual, norm, hidden, dtype, nullptr);
      x[hidden + hidden / 2] = Rounded(1e25f, dtype);  // of the second row
      const Rows got = RunNorm(x, residual, norm, hidden, dtype, nullptr);
      for (int64_t i = 0; i < kRows * hidden; ++i) {
        if (i / hidden == 1) {
          ASSERT_TRUE(std::isnan(got.y[i])) << DTypeName(dtype) << ", " << i;
        } else {
          ASSERT_EQ(got.y[i], want.y[i]) << DTypeName(dtype) << ", " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
