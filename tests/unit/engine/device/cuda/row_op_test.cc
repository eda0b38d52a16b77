// The ops on rows and sequences but attention, against their formulas in
// double.
#include <cmath>

#include "engine/base/pooling.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr float kEps = 1e-12f;
const int32_t kHidden[] = {8, 64, 256, 264, 384, 768, 1024, 1032, 2048, 4096};

struct Norm {
  Norm(int32_t hidden, std::mt19937* random)
      : gain(RandomValues(hidden, DType::kF32, random)),
        bias(RandomValues(hidden, DType::kF32, random)),
        gain_on_card(gain, DType::kF32),
        bias_on_card(bias, DType::kF32) {}
  NormRef ref() const {
    return {gain_on_card.as<float>(), bias_on_card.as<float>(), kEps};
  }
  const std::vector<float> gain, bias;
  const OnCard gain_on_card, bias_on_card;
};

// LayerNorm of `sum` is within one rounding of `got`; float sums of values of
// about 1 add less than 1e-5.
void ExpectNorm(const std::vector<double>& sum, const Norm& norm,
                const float* got, DType dtype) {
  const auto hidden = static_cast<double>(sum.size());
  double mean = 0, variance = 0;
  for (const double value : sum) mean += value / hidden;
  for (const double value : sum)
    variance += (value - mean) * (value - mean) / hidden;
  for (size_t h = 0; h < sum.size(); ++h) {
    const double want =
        (sum[h] - mean) / std::sqrt(variance + kEps) * norm.gain[h] +
        norm.bias[h];
    ASSERT_TRUE(std::fabs(got[h] - want) <=
                1e-5 + std::fabs(want) * Epsilon(dtype))
        << DTypeName(dtype) << ", column " << h << " of " << sum.size() << ": "
        << got[h] << " for " << want;
  }
}

// In place: y is the residual or, where there is none, x.
void ExpectNormEqualsItsFormula(bool with_residual) {
  std::mt19937 random(1);
  for (const DType dtype : kDTypes) {
    for (const int32_t hidden : kHidden) {
      const int64_t rows = 5;  // not a multiple of a block's
      const Norm norm(hidden, &random);
      const auto x = RandomValues(rows * hidden, dtype, &random);
      const auto residual = RandomValues(rows * hidden, dtype, &random);
      const OnCard x_card(x, dtype), residual_card(residual, dtype);
      const OnCard& y_card = with_residual ? residual_card : x_card;
      AddNormOp op;
      op.x = x_card.View(rows, hidden, dtype);
      if (with_residual) op.residual = residual_card.View(rows, hidden, dtype);
      op.norm = norm.ref();
      op.y = y_card.View(rows, hidden, dtype);
      ASSERT_EQ(Start(op, nullptr), 0);
      const std::vector<float> got = y_card.Values(dtype);
      for (int64_t r = 0; r < rows; ++r) {
        std::vector<double> sum(hidden);
        for (int32_t h = 0; h < hidden; ++h) {
          sum[h] = x[r * hidden + h];
          if (with_residual) sum[h] += residual[r * hidden + h];
        }
        ExpectNorm(sum, norm, got.data() + r * hidden, dtype);
      }
    }
  }
}

TEST(AddLayerNormOpTest, EqualsItsFormulaAtEveryWidth) {
  ExpectNormEqualsItsFormula(/*with_residual=*/true);
}

TEST(AddLayerNormOpTest, EqualsItsFormulaWithoutAResidual) {
  ExpectNormEqualsItsFormula(/*with_residual=*/false);
}

TEST(AddLayerNormOpTest, KeepsPrecisionFarFromZero) {
  // Mean 1000, deviation 1: E[x^2] - mean^2 would lose every digit in float.
  std::mt19937 random(2);
  const int32_t hidden = 384;
  const Norm norm(hidden, &random);
  std::vector<float> x = RandomValues(hidden, DType::kF32, &random);
  for (float& value : x) value += 1000.0f;
  const OnCard x_card(x, DType::kF32);
  const OnCard zero(std::vector<float>(hidden, 0.0f), DType::kF32);
  AddNormOp op;
  op.x = op.y = x_card.View(1, hidden, DType::kF32);
  op.residual = zero.View(1, hidden, DType::kF32);
  op.norm = norm.ref();
  ASSERT_EQ(Start(op, nullptr), 0);
  const std::vector<float> got = x_card.Values(DType::kF32);
  double mean = 0, variance = 0;
  for (const float value : x) mean += double{value} / hidden;
  for (const float value : x)
    variance += (value - mean) * (value - mean) / hidden;
  for (int32_t h = 0; h < hidden; ++h) {
    const double want =
        (x[h] - mean) / std::sqrt(variance) * norm.gain[h] + norm.bias[h];
    // A mean of 1000 in float is off by up to 3e-5.
    ASSERT_NEAR(got[h], want, 2e-4 * (1 + std::fabs(norm.gain[h])));
  }
}

TEST(EmbedTokensOpTest, AddsTheRowsOfThreeTablesAndNormalises) {
  std::mt19937 random(3);
  for (const DType dtype : kDTypes) {
    for (const int32_t hidden : {8, 384, 1024}) {
      for (const bool with_norm : {true, false}) {
        for (const bool with_others : {true, false}) {
          const auto token = RandomValues(11 * hidden, dtype, &random);
          const auto position = RandomValues(7 * hidden, dtype, &random);
          const auto segment = RandomValues(2 * hidden, dtype, &random);
          const OnCard tokens(token, dtype), positions(position, dtype),
              segments(segment, dtype);
          const std::vector<int32_t> token_ids = {10, 0, 3, 10, 9};
          const std::vector<int32_t> position_ids = {6, 0, 1, 2, 6};
          const std::vector<int32_t> segment_ids = {0, 1, 1, 0, 1};
          const OnCard t = OnCard::Of(token_ids), p = OnCard::Of(position_ids),
                       s = OnCard::Of(segment_ids);
          const OnCard out(5 * hidden * DTypeBytes(dtype));
          const Norm norm(hidden, &random);
          EmbedOp op;
          op.tables.token = tokens.data();
          if (with_others) {
            op.tables.position = positions.data();
            op.tables.segment = segments.data();
          }
          op.batch = {5, t.as<int32_t>(), p.as<int32_t>(), s.as<int32_t>()};
          if (with_norm) op.norm = norm.ref();
          op.out = out.View(5, hidden, dtype);
          ASSERT_EQ(Start(op, nullptr), 0);
          const std::vector<float> got = out.Values(dtype);
          for (int64_t r = 0; r < 5; ++r) {
            std::vector<double> sum(hidden);
            for (int32_t h = 0; h < hidden; ++h) {
              sum[h] = token[token_ids[r] * hidden + h];
              if (!with_others) continue;
              sum[h] += position[position_ids[r] * hidden + h];
              sum[h] += segment[segment_ids[r] * hidden + h];
            }
            const float* row = got.data() + r * hidden;
            if (with_norm) {
              ExpectNorm(sum, norm, row, dtype);
              continue;
            }
            for (int32_t h = 0; h < hidden; ++h) {
              ASSERT_NEAR(row[h], sum[h],
                          1e-6 + std::fabs(sum[h]) * Epsilon(dtype));
            }
          }
        }
      }
    }
  }
}

TEST(EmbedTokensOpTest, TablesOf16BitsGiveTheBitsOfTheirFloats) {
  constexpr int64_t kRows = 5, kColumns = 16;
  std::mt19937 random(8);
  const std::vector<int32_t> ids = {4, 0, 3, 1, 2};
  const OnCard on_card = OnCard::Of(ids);
  for (const DType dtype : kDTypes) {
    const auto device = OpenTestCard(dtype);
    for (const DType of_file : {DType::kF16, DType::kBF16}) {
      EmbeddingWeights halves, floats;
      halves.token = HostTable(kRows, kColumns, of_file);
      for (uint16_t& bits : halves.token.halves)
        bits = static_cast<uint16_t>(random() & 0xbfff);  // below 2
      halves.position = floats.position = HostMatrix{
          kRows, kColumns, RandomValues(kRows * kColumns, dtype, &random)};
      floats.token = halves.token.Widened();
      std::vector<std::vector<char>> sums;
      for (const EmbeddingWeights& weights : {halves, floats}) {
        const auto tables = device->PrepareEmbeddings(weights, 1e-6f).value();
        EXPECT_EQ(tables->tables.dtype, dtype);
        EXPECT_EQ(tables->tables.segment, nullptr);
        const OnCard out(kRows * kColumns * DTypeBytes(dtype));
        EmbedOp op;
        op.tables = tables->tables;
        op.batch.rows = kRows;
        op.batch.token_ids = op.batch.position_ids = op.batch.segment_ids =
            on_card.as<int32_t>();
        op.out = out.View(kRows, kColumns, dtype);
        ASSERT_EQ(Start(op, nullptr), 0);
        sums.push_back(out.Bytes());
      }
      EXPECT_EQ(sums[0], sums[1]) << DTypeName(of_file);
    }
  }
}

double Formula(Activation function, double x) {
  if (function == Activation::kRelu) return std::max(x, 0.0);
  if (function == Activation::kGeluErf)
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(BiasActivationOpTest, EqualsItsFormulaInPlace) {
  std::mt19937 random(4);
  for (const DType dtype : kDTypes) {
    for (const Activation function :
         {Activation::kGeluErf, Activation::kGeluTanh, Activation::kRelu}) {
      const int64_t rows = 37, cols = 136;  // not a multiple of a block's
      const auto x = RandomValues(rows * cols, dtype, &random, 3.0f);
      const auto bias = RandomValues(cols, DType::kF32, &random);
      const OnCard y(x, dtype), bias_card(bias, DType::kF32);
      const BiasActivationOp op = {function, bias_card.as<float>(),
                                   y.View(rows, cols, dtype)};
      ASSERT_EQ(Start(op, nullptr), 0);
      const std::vector<float> got = y.Values(dtype);
      for (int64_t i = 0; i < rows * cols; ++i) {
        const double want =
            Formula(function, double{x[i]} + double{bias[i % cols]});
        ASSERT_NEAR(got[i], want, 3e-6 + std::fabs(want) * Epsilon(dtype));
      }
    }
  }
}

// More than one block wide, and with a last row that has none to pair with.
TEST(BiasActivationOpTest, EqualsItsFormulaAtTheWidthsOfModels) {
  std::mt19937 random(7);
  for (const DType dtype : kDTypes) {
    for (const int32_t cols : {8, 1536, 2048, 2056, 3072, 4104}) {
      for (const int64_t rows : {1, 3}) {
        const auto x = RandomValues(rows * cols, dtype, &random, 2.0f);
        const auto bias = RandomValues(cols, DType::kF32, &random);
        const OnCard y(x, dtype), bias_card(bias, DType::kF32);
        const BiasActivationOp op = {Activation::kGeluErf,
                                     bias_card.as<float>(),
                                     y.View(rows, cols, dtype)};
        ASSERT_EQ(Start(op, nullptr), 0);
        const std::vector<float> got = y.Values(dtype);
        for (int64_t i = 0; i < rows * cols; ++i) {
          const double want = Formula(Activation::kGeluErf,
                                      double{x[i]} + double{bias[i % cols]});
          ASSERT_NEAR(got[i], want, 3e-6 + std::fabs(want) * Epsilon(dtype))
              << cols << " columns, value " << i;
        }
      }
    }
  }
}

TEST(PoolOpTest, EqualsTheHostsPoolingInEveryWay) {
  std::mt19937 random(5);
  const Pooling kinds[] = {Pooling::kCls,          Pooling::kMean,
                           Pooling::kMax,          Pooling::kMeanSqrtLen,
                           Pooling::kWeightedMean, Pooling::kLastToken};
  for (const DType dtype : kDTypes) {
    for (const int32_t hidden : {8, 384, 768, 1032, 4096}) {
      const auto x = RandomValues(100 * hidden, dtype, &random);
      const OnCard x_card(x, dtype);
      std::vector<PoolWork> work;
      for (const Pooling pooling : kinds) {
        for (const int32_t length : {1, 2, 17, 18, 33, 40}) {
          for (const bool normalize : {false, true}) {
            const auto at = static_cast<int64_t>(work.size()) * hidden;
            work.push_back(
                {at, 100 - length, length, pooling, false, normalize});
          }
        }
      }
      const OnCard list = OnCard::Of(work);
      const OnCard out(4 * static_cast<int64_t>(work.size()) * hidden);
      const PoolOp op = {x_card.View(100, hidden, dtype), list.as<PoolWork>(),
                         static_cast<int64_t>(work.size()), out.as<float>()};
      ASSERT_EQ(Start(op, nullptr), 0);
      const std::vector<float> got = out.Values(DType::kF32);
      for (size_t w = 0; w < work.size(); ++w) {
        std::vector<float> want(hidden);
        PoolStates(work[w].pooling, x.data() + work[w].first * hidden,
                   work[w].length, hidden, want.data());
        if (work[w].normalize) NormalizeL2(want.data(), hidden);
        for (int32_t h = 0; h < hidden; ++h)
          ASSERT_NEAR(got[work[w].out_offset + h], want[h], 5e-6) << w;
      }
    }
  }
}

TEST(PoolOpTest, TheLargestKeepsANaNWhereverItStands) {
  constexpr int32_t kHidden = 8, kLength = 20;
  for (const DType dtype : kDTypes) {
    for (const int32_t row : {0, 7, kLength - 1}) {
      std::vector<float> x(kLength * kHidden, 1.0f);
      x[row * kHidden + 3] = NAN;
      const OnCard x_card(x, dtype);
      const OnCard list = OnCard::Of(
          std::vector<PoolWork>{{0, 0, kLength, Pooling::kMax, false, false}});
      const OnCard out(4 * kHidden);
      const PoolOp op = {x_card.View(kLength, kHidden, dtype),
                         list.as<PoolWork>(), 1, out.as<float>()};
      ASSERT_EQ(Start(op, nullptr), 0);
      const std::vector<float> got = out.Values(DType::kF32);
      for (int32_t h = 0; h < kHidden; ++h)
        EXPECT_EQ(std::isnan(got[h]), h == 3) << row << ", " << h;
    }
  }
}

// Row `which[i]` of `rows` rows as row i.
std::vector<float> Picked(const std::vector<float>& rows, int32_t cols,
                          const std::vector<int32_t>& which) {
  std::vector<float> picked;
  for (const int32_t row : which) {
    picked.insert(picked.end(), rows.begin() + row * cols,
                  rows.begin() + (row + 1) * cols);
  }
  return picked;
}

// op(x, residual) of rows in any order and number has the bits of all at once.
template <typename RowOp>
void ExpectSameBitsInAnyBatch(DType dtype, int32_t cols, const RowOp& op) {
  std::mt19937 random(8);
  const int32_t rows = 11;
  const auto x = RandomValues(rows * cols, dtype, &random);
  const auto residual = RandomValues(rows * cols, dtype, &random);
  const std::vector<float> all = op(x, residual);
  for (int batch = 0; batch < 200; ++batch) {
    std::vector<int32_t> which(1 + random() % 9);
    for (int32_t& row : which) row = static_cast<int32_t>(random() % rows);
    const std::vector<float> got =
        op(Picked(x, cols, which), Picked(residual, cols, which));
    const std::vector<float> want = Picked(all, cols, which);
    ASSERT_EQ(std::memcmp(got.data(), want.data(), 4 * want.size()), 0)
        << DTypeName(dtype) << ", " << which.size() << " rows";
  }
}

TEST(RowOpTest, GivesARowTheSameBitsInAnyBatch) {
  const int32_t cols = 272;
  std::mt19937 random(9);
  const Norm norm(cols, &random);
  const OnCard bias(RandomValues(cols, DType::kF32, &random), DType::kF32);
  for (const DType dtype : kDTypes) {
    for (const bool with_residual : {true, false}) {
      ExpectSameBitsInAnyBatch(
          dtype, cols, [&](const auto& x, const auto& residual) {
            const OnCard x_card(x, dtype), residual_card(residual, dtype);
            const int64_t rows = static_cast<int64_t>(x.size()) / cols;
            AddNormOp op;
            op.x = op.y = x_card.View(rows, cols, dtype);
            if (with_residual)
              op.residual = residual_card.View(rows, cols, dtype);
            op.norm = norm.ref();
            EXPECT_EQ(Start(op, nullptr), 0);
            return x_card.Values(dtype);
          });
    }
    ExpectSameBitsInAnyBatch(dtype, cols, [&](const auto& x, const auto&) {
      const OnCard y(x, dtype);
      const BiasActivationOp op = {
          Activation::kGeluErf, bias.as<float>(),
          y.View(static_cast<int64_t>(x.size()) / cols, cols, dtype)};
      EXPECT_EQ(Start(op, nullptr), 0);
      return y.Values(dtype);
    });
  }
}

TEST(PoolOpTest, WidensStatesAndLeavesAZeroVectorZero) {
  for (const DType dtype : kDTypes) {
    const int32_t hidden = 264;
    std::mt19937 random(6);
    std::vector<float> x = RandomValues(4 * hidden, dtype, &random);
    std::fill(x.begin() + 3 * hidden, x.end(), 0.0f);
    const OnCard x_card(x, dtype);
    const OnCard list = OnCard::Of(
        std::vector<PoolWork>{{0, 1, 2, Pooling::kCls, true, false},
                              {2 * hidden, 3, 1, Pooling::kCls, false, true}});
    const OnCard out(4 * 3 * hidden);
    const PoolOp op = {x_card.View(4, hidden, dtype), list.as<PoolWork>(), 2,
                       out.as<float>()};
    ASSERT_EQ(Start(op, nullptr), 0);
    const std::vector<float> got = out.Values(DType::kF32);
    for (int32_t i = 0; i < 2 * hidden; ++i) ASSERT_EQ(got[i], x[hidden + i]);
    for (int32_t i = 2 * hidden; i < 3 * hidden; ++i) ASSERT_EQ(got[i], 0.0f);
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
