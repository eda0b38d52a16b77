// A gated feed-forward layer's activation and product, against the formula in
// double.
#include <cmath>

#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr Activation kActivations[] = {Activation::kNone, Activation::kGeluErf,
                                       Activation::kGeluTanh,
                                       Activation::kRelu};

double Formula(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      break;
  }
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// y [rows,cols] of x [rows,2 cols].
std::vector<float> RunGate(const std::vector<float>& x, int64_t cols,
                           Activation activation, DType dtype) {
  const int64_t rows = static_cast<int64_t>(x.size()) / (2 * cols);
  const OnCard x_card(x, dtype), y(rows * cols * DTypeBytes(dtype));
  GateOp op;
  op.x = x_card.View(rows, 2 * cols, dtype);
  op.activation = activation;
  op.y = y.View(rows, cols, dtype);
  EXPECT_EQ(Start(op, nullptr), 0);
  return y.Values(dtype);
}

// The activation in float is within 3e-6 of the formula and is multiplied
// before the one rounding.
void CheckGate(int64_t rows, int64_t cols, Activation activation, DType dtype,
               std::mt19937* random) {
  const auto x = RandomValues(rows * 2 * cols, dtype, random, 3.0f);
  const std::vector<float> got = RunGate(x, cols, activation, dtype);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      const double gate = x[(2 * r + 1) * cols + c];
      const double want = Formula(activation, x[2 * r * cols + c]) * gate;
      ASSERT_TRUE(std::fabs(got[r * cols + c] - want) <=
                  3e-6 * std::fabs(gate) + 1e-7 +
                      std::fabs(want) * Epsilon(dtype))
          << DTypeName(dtype) << ", " << cols << " columns, row " << r
          << ", column " << c << ": " << got[r * cols + c] << " for " << want;
    }
  }
}

TEST(GateOpTest, EqualsItsFormulaForEveryActivation) {
  std::mt19937 random(1);
  for (const DType dtype : kDTypes) {
    for (const Activation activation : kActivations)
      CheckGate(37, 136, activation, dtype, &random);
  }
}

// More than one block wide, and with a last row that has none to pair with.
TEST(GateOpTest, EqualsItsFormulaAtTheWidthsOfModels) {
  std::mt19937 random(2);
  for (const DType dtype : kDTypes) {
    for (const int64_t cols : {8, 16, 1152, 2048, 2056, 2624, 4104}) {
      for (const int64_t rows : {1, 2, 3})
        CheckGate(rows, cols, Activation::kGeluErf, dtype, &random);
    }
  }
}

TEST(GateOpTest, LetsNotANumberThroughEitherHalf) {
  const int64_t cols = 24;
  for (const DType dtype : kDTypes) {
    for (const Activation activation : kActivations) {
      for (const int64_t at : {0, 23, 24, 47}) {
        std::vector<float> x(2 * cols, 1.0f);
        x[at] = NAN;
        const std::vector<float> got = RunGate(x, cols, activation, dtype);
        for (int64_t c = 0; c < cols; ++c)
          EXPECT_EQ(std::isnan(got[c]), c == at % cols) << at;
      }
    }
  }
}

TEST(GateOpTest, GivesARowTheSameBitsInAnyBatch) {
  std::mt19937 random(3);
  const int64_t cols = 264, rows = 11;
  for (const DType dtype : kDTypes) {
    const auto x = RandomValues(rows * 2 * cols, dtype, &random);
    const auto all = RunGate(x, cols, Activation::kGeluErf, dtype);
    for (int batch = 0; batch < 200; ++batch) {
      std::vector<float> some, want;
      for (size_t i = 1 + random() % 9; i > 0; --i) {
        const auto row = static_cast<int64_t>(random() % rows);
        some.insert(some.end(), x.begin() + row * 2 * cols,
                    x.begin() + (row + 1) * 2 * cols);
        want.insert(want.end(), all.begin() + row * cols,
                    all.begin() + (row + 1) * cols);
      }
      const auto got = RunGate(some, cols, Activation::kGeluErf, dtype);
      ASSERT_EQ(std::memcmp(got.data(), want.data(), 4 * want.size()), 0)
          << DTypeName(dtype) << ", batch " << batch;
    }
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
