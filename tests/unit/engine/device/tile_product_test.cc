// Products by AMX's tiles: emulated on any CPU, and the instructions themselves
// where the CPU has them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/cpu_info.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/product.h"
#include "tests/support/activation.h"
#include "tests/support/narrow.h"
#include "tests/support/tolerances.h"
#include "tests/unit/engine/device/emulated_tiles.h"

namespace encoderd {
namespace cpu {
namespace {

using emulation::FromBf16;
using emulation::ToBf16;

enum class By { kEmulation, kAmx };

class TileProductTest : public ::testing::TestWithParam<By> {
 protected:
  void SetUp() override {
    if (GetParam() == By::kAmx && !HasIsa(Isa::kAvx512Amx))
      GTEST_SKIP() << "this CPU has no avx512_amx; the emulation is tested";
  }

  void Pack(Activation activation) {
    product_ = Product::Create(
        GetParam() == By::kAmx ? *Avx512AmxProducts() : EmulatedAmxProducts(),
        weights_, activation, &memory_);
    ASSERT_TRUE(product_.ok()) << product_.status();
  }

  void Prepare(int64_t in, int64_t out, int64_t rows,
               Activation activation = Activation::kNone) {
    std::mt19937 random(static_cast<uint32_t>(in * 64 + out));
    std::uniform_real_distribution<float> values(-1, 1);
    weights_.weight = {out, in, std::vector<float>(out * in)};
    weights_.bias.resize(out);
    x_.resize(rows * in);
    for (float& value : weights_.weight.data)
      value = FromBf16(ToBf16(0.05f * values(random)));
    for (float& value : weights_.bias) value = values(random);
    for (uint16_t& value : x_) value = ToBf16(values(random));
    Pack(activation);
  }

  // Rows first .. first + rows - 1 of y, by `parts` parts of the panels. x and
  // the scratch end where they must, so that a sanitizer sees a read beyond.
  std::vector<uint16_t> Run(int64_t first, int64_t rows, int64_t parts = 1) {
    const int64_t in = weights_.weight.cols, out = weights_.weight.rows;
    std::vector<uint16_t> x(x_.begin() + first * in,
                            x_.begin() + (first + rows) * in);
    std::vector<uint16_t> y(rows * out);
    const AlignedBuffer scratch(product_->scratch_bytes(rows));
    const int64_t panels = product_->panels();
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = panels * part / parts;
      product_->Run({x.data(), rows, in, DType::kBF16},
                    {begin, panels * (part + 1) / parts - begin},
                    {y.data(), rows, out, DType::kBF16}, scratch.data());
    }
    return y;
  }

  std::vector<uint16_t> RowsOf(const std::vector<uint16_t>& y, int64_t first,
                               int64_t rows) const {
    const int64_t out = weights_.weight.rows;
    return {y.begin() + first * out, y.begin() + (first + rows) * out};
  }

  void ExpectEqualsReference(int64_t rows, Activation activation) {
    const int64_t in = weights_.weight.cols, out = weights_.weight.rows;
    const std::vector<uint16_t> y = Run(0, rows);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t o = 0; o < out; ++o) {
        double want = weights_.bias[o];
        for (int64_t k = 0; k < in; ++k)
          want += double{FromBf16(x_[r * in + k])} * weights_.weight.Row(o)[k];
        ASSERT_NEAR(FromBf16(y[r * out + o]), Activate(want, activation),
                    kBf16Op)
            << in << " to " << out << ", row " << r << ", output " << o;
      }
    }
  }

  LinearWeights weights_;
  WeightMemory memory_;
  std::vector<uint16_t> x_;
  absl::StatusOr<Product> product_ = absl::UnknownError("not prepared");
};

TEST_P(TileProductTest, EqualsTheReferenceWithEveryActivation) {
  for (const Activation activation :
       {Activation::kNone, Activation::kGeluErf, Activation::kGeluTanh,
        Activation::kRelu}) {
    for (const int64_t in : {1, 2, 31, 32, 33, 75, 384, 1025}) {
      for (const int64_t out : {1, 15, 16, 17, 32, 50, 77}) {
        Prepare(in, out, 35, activation);
        for (const int64_t rows : {1, 16, 35})
          ExpectEqualsReference(rows, activation);
      }
    }
  }
}

TEST_P(TileProductTest, SumsEveryNumberOfColumns) {
  for (int64_t in = 1; in <= 1100; ++in) {
    Prepare(in, 7, 2);
    ExpectEqualsReference(2, Activation::kNone);
  }
}

TEST_P(TileProductTest, KeepsARowsBitsInAnyBatch) {
  constexpr int64_t kRows = 40;
  for (const int64_t in : {1, 16, 31, 32, 64, 65, 159, 384, 1099}) {
    Prepare(in, 77, kRows, Activation::kGeluErf);
    const std::vector<uint16_t> all = Run(0, kRows);
    for (int64_t row = 0; row < kRows; ++row)
      ASSERT_EQ(Run(row, 1), RowsOf(all, row, 1)) << in << ", row " << row;
    for (int64_t rows = 2; rows < kRows; ++rows) {
      for (const int64_t first : {int64_t{0}, (kRows - rows) / 2, kRows - rows})
        ASSERT_EQ(Run(first, rows), RowsOf(all, first, rows))
            << in << ", " << rows << " rows from " << first;
    }
  }
}

TEST_P(TileProductTest, KeepsARowsBitsAtEveryNumberOfColumns) {
  for (int64_t in = 1; in <= 1100; ++in) {
    Prepare(in, 33, 33);
    const std::vector<uint16_t> all = Run(0, 33);
    for (const int64_t row : {0, 15, 16, 32})
      ASSERT_EQ(Run(row, 1), RowsOf(all, row, 1)) << in << ", row " << row;
  }
}

TEST_P(TileProductTest, PartsOfTheColumnsHaveTheBitsOfTheWhole) {
  for (const int64_t in : {31, 64, 385}) {
    for (const int64_t out : {20, 32, 100, 161, 384}) {
      Prepare(in, out, kProductRows, Activation::kGeluTanh);
      for (const int64_t rows :
           {1L, 7L, 16L, 17L, 31L, 32L, 35L, kProductRows}) {
        const std::vector<uint16_t> whole = Run(0, rows);
        for (const int64_t parts : {2, 3, 5, 12})
          ASSERT_EQ(Run(0, rows, parts), whole)
              << in << " to " << out << ", " << rows << " rows";
      }
    }
  }
}

TEST_P(TileProductTest, ARowThatIsNoNumberStaysAlone) {
  for (const int64_t in : {7, 32, 75}) {
    Prepare(in, 21, 20);
    const std::vector<uint16_t> before = Run(0, 20);
    std::fill_n(x_.begin() + 2 * in, in, 0xffff);
    const std::vector<uint16_t> after = Run(0, 20);
    EXPECT_EQ(RowsOf(after, 0, 2), RowsOf(before, 0, 2)) << in;
    EXPECT_EQ(RowsOf(after, 3, 17), RowsOf(before, 3, 17)) << in;
    for (const uint16_t value : RowsOf(after, 2, 1))
      EXPECT_TRUE(std::isnan(FromBf16(value))) << in;
  }
}

TEST_P(TileProductTest, CountsDenormalsAsZeros) {
  Prepare(32, 4, 1);
  std::fill(weights_.weight.data.begin(), weights_.weight.data.end(), 0x1p127f);
  weights_.bias.assign(4, 1.0f);
  Pack(Activation::kNone);
  std::fill(x_.begin(), x_.end(), uint16_t{0});
  x_[0] = ToBf16(0x1p-126f);
  EXPECT_EQ(Run(0, 1), std::vector<uint16_t>(4, ToBf16(3.0f)));
  x_[0] = ToBf16(0x1p-127f);
  EXPECT_EQ(Run(0, 1), std::vector<uint16_t>(4, ToBf16(1.0f)));
}

TEST_P(TileProductTest, HasTheBitsOfTheEmulation) {
  for (const int64_t in : {1, 32, 75, 768}) {
    Prepare(in, 50, 40);
    const std::vector<uint16_t> y = Run(0, 40);
    product_ = Product::Create(EmulatedAmxProducts(), weights_,
                               Activation::kNone, &memory_);
    EXPECT_EQ(Run(0, 40), y) << in;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, TileProductTest,
                         ::testing::Values(By::kEmulation, By::kAmx),
                         [](const ::testing::TestParamInfo<By>& info) {
                           return info.param == By::kAmx ? "amx" : "emulated";
                         });

}  // namespace
}  // namespace cpu
}  // namespace encoderd
