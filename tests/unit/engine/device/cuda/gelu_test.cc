// gelu.h, over the emulation: how far a float is from the formula in double.
#include "engine/device/cuda/kernels/gelu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace encoderd {
namespace cuda {
namespace {

double Formula(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }

// Largest error over a dense grid of floats in [from, to].
template <typename Error>
double Largest(float from, float to, const Error& error) {
  constexpr int kSteps = 1 << 18;
  double largest = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const auto x =
        static_cast<float>(from + (double{to} - double{from}) * i / kSteps);
    largest = std::max(largest, error(x));
  }
  return largest;
}

template <typename T>
double Relative(float x) {
  const double want = Formula(x);
  return want == 0 ? std::fabs(FastGeluErf<T>(x))
                   : std::fabs(FastGeluErf<T>(x) / want - 1);
}
template <typename T>
double Absolute(float x) {
  return std::fabs(FastGeluErf<T>(x) - Formula(x));
}
double FormulaInFloat(float x) {
  return 0.5f * x * (1.0f + std::erf(x * 0.70710678118654752f));
}

// The bounds of gelu.h, which leave out Exp2's error on a card.
TEST(FastGeluErfTest, IsAsCloseToTheFormulaAsItsHeaderSays) {
  EXPECT_LE(Largest(0.5f, 10.0f, Relative<Half>), 1.3e-7);
  EXPECT_LE(Largest(-1.0f, 10.0f, Relative<Half>), 2.8e-7);
  EXPECT_LE(Largest(-3.0f, -1.0f, Relative<Half>), 1.6e-6);
  EXPECT_LE(Largest(-5.0f, -3.0f, Relative<Half>), 3.4e-6);
  EXPECT_LE(Largest(-6.0f, -5.0f, Relative<Half>), 5.4e-6);
  EXPECT_LE(Largest(-100.0f, 0.0f, Absolute<Half>), 6e-8);
}

TEST(FastGeluErfTest, IsAsCloseForBf16AsItsHeaderSays) {
  EXPECT_LE(Largest(0.0f, 10.0f, Relative<Bf16>), 6.6e-5);
  EXPECT_LE(Largest(-3.0f, 0.0f, Relative<Bf16>), 9.1e-5);
  EXPECT_LE(Largest(-4.0f, -3.0f, Relative<Bf16>), 2.6e-4);
  EXPECT_LE(Largest(-5.0f, -4.0f, Relative<Bf16>), 2.1e-3);
  EXPECT_LE(Largest(-5.0f, 0.0f, Absolute<Bf16>), 1.5e-5);
  EXPECT_LE(Largest(-100.0f, -5.0f, Absolute<Bf16>), 3e-9);
}

TEST(FastGeluErfTest, IsNoFurtherThanTheFormulaInFloatOverAll) {
  const auto in_float = [](float x) {
    return std::fabs(FormulaInFloat(x) - Formula(x));
  };
  EXPECT_LE(Largest(-12.0f, 12.0f, Absolute<Half>),
            Largest(-12.0f, 12.0f, in_float));
}

template <typename T>
void ExpectRightAtTheEnds() {
  EXPECT_EQ(FastGeluErf<T>(0.0f), 0.0f);
  for (const float x : {9.0f, 1e2f, 1e5f, 1e30f}) {
    EXPECT_EQ(FastGeluErf<T>(x), x);
    EXPECT_NEAR(FastGeluErf<T>(-x), 0.0f, 1e-13);
  }
  EXPECT_TRUE(std::isnan(FastGeluErf<T>(NAN)));
  EXPECT_TRUE(std::isnan(FastGeluErf<T>(HUGE_VALF)));
  EXPECT_TRUE(std::isnan(FastGeluErf<T>(-HUGE_VALF)));
}

TEST(FastGeluErfTest, IsRightAtTheEndsAndShowsWhatIsNoNumber) {
  ExpectRightAtTheEnds<Half>();
  ExpectRightAtTheEnds<Bf16>();
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
