#include "engine/device/cpu/product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/narrow.h"
#include "tests/support/tolerances.h"
#include "tests/unit/engine/device/kernel_test.h"

namespace encoderd {
namespace cpu {
namespace {

// The products of one kind of device, over rows of random values.
class ProductTest : public ::testing::TestWithParam<TestDevice> {
 protected:
  void Prepare(int64_t in, int64_t out, int64_t rows,
               Activation activation = Activation::kNone) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> values(-1, 1);
    const auto fill = [&](int64_t count, float scale) {
      std::vector<float> filled(count);
      for (float& value : filled) value = scale * values(random);
      return filled;
    };
    const bool bf16 = GetParam().dtype == DType::kBF16;
    weights_.weight = {out, in, fill(out * in, 0.05f)};
    weights_.bias = fill(out, 1.0f);
    x_ = fill(rows * in, 1.0f);
    if (bf16) {
      for (float& value : x_)
        value = emulation::FromBf16(emulation::ToBf16(value));
      for (float& value : weights_.weight.data)
        value = emulation::FromBf16(emulation::ToBf16(value));
    }
    product_ =
        Product::Create(ProductsOf(GetParam()), weights_, activation, &memory_);
    ASSERT_TRUE(product_.ok()) << product_.status();
    scratch_ = AlignedBuffer(product_->scratch_bytes(rows));
    element_ = bf16 ? 2 : 4;
    x_bytes_.resize(x_.size() * element_);
    for (size_t i = 0; i < x_.size(); ++i) {
      const uint16_t narrow = emulation::ToBf16(x_[i]);
      if (bf16) {
        std::memcpy(&x_bytes_[i * 2], &narrow, 2);
      } else {
        std::memcpy(&x_bytes_[i * 4], &x_[i], 4);
      }
    }
  }

  // Rows first .. first + rows - 1 of y, as bytes, by `parts` parts of the
  // panels.
  std::string Run(int64_t first, int64_t rows, int64_t parts = 1) {
    const int64_t in = weights_.weight.cols, out = weights_.weight.rows;
    std::string y(rows * out * element_, '\0');
    const Matrix from{&x_bytes_[first * in * element_], rows, in,
                      GetParam().dtype};
    const Matrix to{y.data(), rows, out, GetParam().dtype};
    const int64_t panels = product_->panels();
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = panels * part / parts;
      const int64_t end = panels * (part + 1) / parts;
      // As if the next part were the same thread's, too.
      product_->Run(from, {begin, end - begin, end < panels ? end : -1}, to,
                    scratch_.data());
    }
    return y;
  }

  // Whatever number of parts; each number of few rows, and some more.
  void ExpectColumnsIndependent(int64_t in, int64_t out) {
    constexpr int64_t kFirst = 3;
    Prepare(in, out, kFirst + kProductRows);
    std::vector<int64_t> counts(32);
    std::iota(counts.begin(), counts.end(), 1);
    counts.insert(counts.end(), {47, 64, kProductRows});
    for (const int64_t rows : counts) {
      const std::string whole = Run(kFirst, rows);
      for (const int64_t parts : {2, 3, 7}) {
        EXPECT_EQ(Run(kFirst, rows, parts), whole)
            << in << " to " << out << ", " << rows << " rows, " << parts
            << " parts";
      }
    }
  }

  // Every number of rows that a batch can end in, from two places.
  void ExpectRowsIndependent(int64_t in, int64_t out) {
    constexpr int64_t kRows = 300;
    Prepare(in, out, kRows);
    const std::string all = Run(0, kRows);
    const int64_t row_bytes = out * element_;
    std::vector<int64_t> counts = {1,  2,  3,  4,  5,   6,   7,   8,   9,  15,
                                   16, 17, 24, 31, 100, 127, 129, 200, 255};
    for (int64_t eights = 32; eights <= 128; eights += 8)
      counts.push_back(eights);
    for (const int64_t rows : counts) {
      for (const int64_t first : {int64_t{0}, int64_t{13}}) {
        EXPECT_EQ(Run(first, rows),
                  all.substr(first * row_bytes, rows * row_bytes))
            << in << " to " << out << ", " << rows << " rows from " << first;
      }
    }
  }

  void ExpectEqualsReference(int64_t in, int64_t out, int64_t rows,
                             Activation activation = Activation::kNone) {
    Prepare(in, out, rows, activation);
    const std::string y = Run(0, rows);
    const double tolerance = element_ == 4 ? kFp32Op : kBf16Op;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t o = 0; o < out; ++o) {
        double want = weights_.bias[o];
        for (int64_t k = 0; k < in; ++k)
          want += double{x_[r * in + k]} * weights_.weight.Row(o)[k];
        if (activation == Activation::kRelu) want = std::max(want, 0.0);
        float got = 0;
        if (element_ == 4) {
          std::memcpy(&got, &y[(r * out + o) * 4], 4);
        } else {
          uint16_t narrow = 0;
          std::memcpy(&narrow, &y[(r * out + o) * 2], 2);
          got = emulation::FromBf16(narrow);
        }
        ASSERT_NEAR(got, want, tolerance) << "row " << r << ", output " << o;
      }
    }
  }

  LinearWeights weights_;
  WeightMemory memory_;
  std::vector<float> x_;
  std::string x_bytes_;
  absl::StatusOr<Product> product_ = absl::UnknownError("not prepared");
  AlignedBuffer scratch_;
  int64_t element_ = 4;
};

TEST_P(ProductTest, EqualsTheReferenceAtOddShapes) {
  for (const auto& [in, out] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1},
                                                {7, 21},
                                                {75, 77},
                                                {32, 96},
                                                {130, 17},
                                                {384, 384},
                                                {1025, 50},
                                                {1536, 130},
                                                {1537, 21}}) {
    for (const int64_t rows : {1, 2, 9, 26, 131})
      ExpectEqualsReference(in, out, rows);
  }
}

TEST_P(ProductTest, KeepsARowsBitsAtMiniLmShapes) {
  ExpectRowsIndependent(384, 1152);
  ExpectRowsIndependent(384, 384);
  ExpectRowsIndependent(384, 1536);
  ExpectRowsIndependent(1536, 384);
}

TEST_P(ProductTest, KeepsARowsBitsAtBertBaseShapes) {
  if (GetParam().isa == Isa::kPortable) {
    // Slow here, and the same code as at MiniLM's shapes.
    ExpectRowsIndependent(768, 768);
    return;
  }
  ExpectRowsIndependent(768, 2304);
  ExpectRowsIndependent(768, 768);
  ExpectRowsIndependent(768, 3072);
  ExpectRowsIndependent(3072, 768);
}

TEST_P(ProductTest, PartsOfTheColumnsHaveTheBitsOfTheWhole) {
  for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{
           {384, 1152}, {384, 384}, {384, 1536}, {1536, 384}, {768, 768}}) {
    ExpectColumnsIndependent(in, out);
  }
  ExpectColumnsIndependent(75, 77);
  ExpectColumnsIndependent(64, 300);
  ExpectColumnsIndependent(1537, 300);
  if (GetParam().isa == Isa::kPortable) return;  // slow here, the same code
  ExpectColumnsIndependent(768, 2304);
  ExpectColumnsIndependent(768, 3072);
  ExpectColumnsIndependent(3072, 768);
  ExpectColumnsIndependent(1152, 768);
  ExpectColumnsIndependent(1024, 4096);
  ExpectColumnsIndependent(4096, 1024);
}

TEST_P(ProductTest, AppliesItsActivation) {
  ExpectEqualsReference(75, 77, 26, Activation::kRelu);
}

TEST_P(ProductTest, WritesNothingBeyondItsColumnsAndRows) {
  for (const int64_t out : {1, 21, 77, 128}) {
    Prepare(32, out, 5);
    const std::string all = Run(0, 5);
    std::string y(all.size() + 64, 'x');
    product_->Run({&x_bytes_[0], 5, 32, GetParam().dtype},
                  {0, product_->panels()}, {y.data(), 5, out, GetParam().dtype},
                  scratch_.data());
    EXPECT_EQ(y, all + std::string(64, 'x')) << out;
  }
}

// The last of an odd number of bf16 shares a word with the next row's
// first value.
TEST_P(ProductTest, ARowThatIsNoNumberStaysAlone) {
  for (const int64_t in : {7, 32, 75}) {
    Prepare(in, 21, 4);
    const std::string before = Run(0, 4);
    for (int64_t byte = 0; byte < in * element_; ++byte)
      x_bytes_[2 * in * element_ + byte] = '\xff';  // all of row 2
    const std::string after = Run(0, 4);
    const int64_t row = 21 * element_;
    EXPECT_EQ(after.substr(0, 2 * row), before.substr(0, 2 * row)) << in;
    EXPECT_EQ(after.substr(3 * row), before.substr(3 * row)) << in;
    EXPECT_NE(after.substr(2 * row, row), before.substr(2 * row, row)) << in;
  }
}

TEST_P(ProductTest, KeepsARowsBitsAtOddShapes) {
  ExpectRowsIndependent(75, 77);
  ExpectRowsIndependent(33, 7);
  ExpectRowsIndependent(1537, 77);
}

// What fp32 takes in memory, bf16 halves.
TEST_P(ProductTest, APackedWeightTakesFourBytesAndInBf16Two) {
  constexpr int64_t kIn = 384;  // as many as fill whole panels
  constexpr int64_t kOut = 1536;
  const int64_t each = GetParam().dtype == DType::kBF16 ? 2 : 4;
  EXPECT_EQ(Product::PackedBytes(ProductsOf(GetParam()), kOut, kIn),
            kIn * kOut * each);
}

INSTANTIATE_TEST_SUITE_P(Devices, ProductTest,
                         ::testing::ValuesIn(TestDevices()),
                         [](const ::testing::TestParamInfo<TestDevice>& info) {
                           return TestDeviceName(info.param);
                         });

}  // namespace
}  // namespace cpu
}  // namespace encoderd
