// What add-and-norm keeps of its sum, and which of its matrices may be one.
// kernels_test.cc has the norm itself against double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/unit/engine/device/kernel_test.h"

namespace encoderd {
namespace cpu {
namespace {

constexpr int64_t kRows = 3;

class AddNormKernelTest : public KernelTest {
 protected:
  // Draws x, residual and a norm of `size` columns.
  void Draw(int64_t size) {
    x_ = Random(kRows * size, 2.0f);
    residual_ = Random(kRows * size, 1.0f);
    x_bytes_ = Elements(&x_);
    residual_bytes_ = Elements(&residual_);
    gain_ = Random(size, 0.1f, 1.0f);
    bias_ = Random(size, 0.1f);
  }
  // y; inputs and outputs where the strings are, empty: none.
  void AddNorm(const std::string& x, const std::string& residual,
               const std::string& sum, const std::string& y,
               int64_t rows = kRows) const {
    const auto view = [&](const std::string& bytes) {
      return bytes.empty() ? Matrix() : View(bytes, rows);
    };
    std::vector<float> row(gain_.size());
    Run(AddNormOp{view(x),
                  view(residual),
                  {gain_.data(), bias_.data(), 1e-5f},
                  view(sum),
                  view(y)},
        row.data());
  }
  // Bytes of nobody's values, of which none may be left.
  std::string Unset() const { return std::string(x_bytes_.size(), '\x55'); }

  std::vector<float> x_, residual_, gain_, bias_;
  std::string x_bytes_, residual_bytes_;
};

TEST_P(AddNormKernelTest, KeepsTheSumRoundedOnce) {
  for (const int64_t size : {1, 7, 16, 33, 100, 768}) {
    Draw(size);
    std::string alone = Unset(), sum = Unset(), y = Unset();
    AddNorm(x_bytes_, residual_bytes_, "", alone);
    AddNorm(x_bytes_, residual_bytes_, sum, y);
    EXPECT_EQ(y, alone) << "a kept sum changes the norm";
    std::vector<float> want = x_;
    for (size_t i = 0; i < want.size(); ++i) want[i] += residual_[i];
    EXPECT_EQ(sum, Elements(&want)) << size;
  }
}

TEST_P(AddNormKernelTest, NormalizesTheSumBeforeItIsRounded) {
  // In bf16 200 + 0.25 rounds to 200: the norm must still tell them apart.
  x_ = {200, 200, 200, 200};
  residual_ = {0.25f, 0, 0.25f, 0};
  gain_.assign(4, 1.0f);
  bias_.assign(4, 0.0f);
  x_bytes_ = Elements(&x_);
  residual_bytes_ = Elements(&residual_);
  std::string sum(x_bytes_), y = Unset();
  AddNorm(x_bytes_, residual_bytes_, sum, y, 1);
  const std::vector<float> got = Floats(y);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], i % 2 == 0 ? 1.0f : -1.0f, 1e-2);
}

TEST_P(AddNormKernelTest, NormalizesOneInput) {
  for (const int64_t size : {2, 16, 55, 384}) {
    Draw(size);
    std::string y = Unset(), sum = Unset();
    AddNorm(x_bytes_, "", sum, y);
    EXPECT_EQ(sum, x_bytes_);
    const std::vector<float> got = Floats(y);
    for (int64_t r = 0; r < kRows; ++r) {
      double mean = 0, variance = 0;
      const float* x = x_.data() + r * size;
      for (int64_t h = 0; h < size; ++h) mean += double{x[h]} / size;
      for (int64_t h = 0; h < size; ++h)
        variance += (x[h] - mean) * (x[h] - mean) / size;
      for (int64_t h = 0; h < size; ++h) {
        const double scale = std::sqrt(variance + 1e-5);
        ASSERT_NEAR(got[r * size + h],
                    (x[h] - mean) / scale * gain_[h] + bias_[h], tolerance());
      }
    }
  }
}

TEST_P(AddNormKernelTest, TakesItsInputsAsItsOutputs) {
  for (const int64_t size : {5, 32, 77}) {
    Draw(size);
    std::string want_sum = Unset(), want = Unset();
    AddNorm(x_bytes_, residual_bytes_, want_sum, want);
    std::string x = x_bytes_, residual = residual_bytes_;
    AddNorm(x, residual, x, residual);
    EXPECT_EQ(x, want_sum);
    EXPECT_EQ(residual, want);
    x = x_bytes_;
    residual = residual_bytes_;
    AddNorm(x, residual, residual, x);
    EXPECT_EQ(residual, want_sum);
    EXPECT_EQ(x, want);
    std::string alone = Unset();
    AddNorm(x_bytes_, "", "", alone);
    x = x_bytes_;
    AddNorm(x, "", "", x);
    EXPECT_EQ(x, alone);
  }
}

TEST_P(AddNormKernelTest, GivesARowTheSameBitsInAnyBatch) {
  Draw(45);
  std::string sum = Unset(), y = Unset();
  AddNorm(x_bytes_, residual_bytes_, sum, y);
  const size_t row = x_bytes_.size() / kRows;
  for (size_t r = 0; r < kRows; ++r) {
    std::string row_sum(row, '\0'), row_y(row, '\0');
    AddNorm(x_bytes_.substr(r * row, row), residual_bytes_.substr(r * row, row),
            row_sum, row_y, 1);
    EXPECT_EQ(row_sum, sum.substr(r * row, row));
    EXPECT_EQ(row_y, y.substr(r * row, row));
  }
}

// 1 / sqrt(inf) is 0: such a row would be the norm's bias.
TEST_P(AddNormKernelTest, ARowWhoseVarianceOverflowsIsNaNs) {
  for (const int64_t size : {2, 7, 16, 33, 100, 768}) {
    Draw(size);
    std::string want = Unset(), y = Unset();
    AddNorm(x_bytes_, residual_bytes_, "", want);
    x_[size + size / 2] = 1e25f;  // of the second row
    x_bytes_ = Elements(&x_);
    AddNorm(x_bytes_, residual_bytes_, "", y);
    const size_t row = y.size() / kRows;
    for (const float value : Floats(y.substr(row, row)))
      ASSERT_TRUE(std::isnan(value)) << size;
    EXPECT_EQ(y.substr(0, row), want.substr(0, row)) << size;
    EXPECT_EQ(y.substr(2 * row), want.substr(2 * row)) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, AddNormKernelTest,
                         ::testing::ValuesIn(TestDevices()), KernelTestName);

}  // namespace
}  // namespace cpu
}  // namespace encoderd
