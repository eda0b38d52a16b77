// Gated activations of each instruction set against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/unit/engine/device/kernel_test.h"

namespace encoderd {
namespace cpu {
namespace {

struct Function {
  Activation activation;
  double (*want)(double);
};

double Identity(double x) { return x; }
double GeluErf(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double GeluTanh(double x) {
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}
double Relu(double x) { return std::max(x, 0.0); }

constexpr Function kFunctions[] = {{Activation::kNone, Identity},
                                   {Activation::kGeluErf, GeluErf},
                                   {Activation::kGeluTanh, GeluTanh},
                                   {Activation::kRelu, Relu}};

class GateKernelTest : public KernelTest {
 protected:
  std::string Gated(Activation activation, const std::string& x,
                    int64_t rows) const {
    std::string y(x.size() / 2, '\x55');
    Run(GateOp{View(x, rows), activation, View(y, rows)}, nullptr);
    return y;
  }
};

TEST_P(GateKernelTest, MultipliesAnActivationByTheOtherHalf) {
  const int64_t rows = 3;
  for (const int64_t columns : {1, 3, 16, 17, 31, 100, 1152}) {
    std::vector<float> x = Random(rows * 2 * columns, 2.0f);
    const std::string bytes = Elements(&x);
    for (const Function& function : kFunctions) {
      const std::vector<float> got =
          Floats(Gated(function.activation, bytes, rows));
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = x.data() + r * 2 * columns;
        for (int64_t f = 0; f < columns; ++f) {
          const double factor = row[columns + f];
          const double want = function.want(row[f]) * factor;
          // The function's error, times the factor; then one rounding.
          const double error = (kernels_.bf16 ? kGeluBf16 : kGelu) *
                               std::max(1.0, std::abs(factor));
          const double rounding =
              std::abs(want) * (kernels_.bf16 ? 1.0 / 256 : 2.4e-7);
          ASSERT_NEAR(got[r * columns + f], want, error + rounding)
              << "columns " << columns << ", row " << r << ", value " << f;
        }
      }
    }
  }
}

TEST_P(GateKernelTest, GivesARowTheSameBitsInAnyBatch) {
  std::vector<float> x = Random(4 * 2 * 37, 2.0f);
  const std::string bytes = Elements(&x);
  for (const Function& function : kFunctions) {
    const std::string all = Gated(function.activation, bytes, 4);
    const size_t in = bytes.size() / 4, out = all.size() / 4;
    for (size_t r = 0; r < 4; ++r) {
      EXPECT_EQ(Gated(function.activation, bytes.substr(r * in, in), 1),
                all.substr(r * out, out));
    }
  }
}

TEST_P(GateKernelTest, LetsNotANumberThroughEitherHalf) {
  for (const Function& function : kFunctions) {
    for (const int64_t at : {0, 18, 19, 37}) {
      std::vector<float> x(38, 1.0f);
      x[at] = std::nanf("");
      const std::vector<float> got =
          Floats(Gated(function.activation, Elements(&x), 1));
      for (int64_t f = 0; f < 19; ++f)
        EXPECT_EQ(std::isnan(got[f]), f == at % 19) << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GateKernelTest,
                         ::testing::ValuesIn(TestDevices()), KernelTestName);

}  // namespace
}  // namespace cpu
}  // namespace encoderd
