#include "engine/device/cpu/product.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cpu/aligned_buffer.h"
#include "tests/support/narrow.h"
#include "tests/support/tolerances.h"
#include "tests/unit/engine/device/test_devices.h"

namespace encoderd {
namespace cpu {
namespace {

// The products of one kind of device, over rows of random values.
class ProductTest : public ::testing::TestWithParam<TestDevice> {
 protected:
  void Prepare(int64_t in, int64_t out, int64_t rows) {
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
    factory_ =
        GetParam().isa >= Isa::kAvx512
            ? OneDnnProducts(GetParam().dtype)
            : OwnProducts(GetParam().isa == Isa::kAvx2 ? *Avx2Kernels()
                                                       : *PortableKernels());
    product_ = factory_->Create(weights_).value();
    scratch_ = AlignedBuffer(product_->scratch_bytes());
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

  // Rows first .. first + rows - 1 of y, as bytes.
  std::string Run(int64_t first, int64_t rows) {
    std::string y(rows * weights_.weight.rows * element_, '\0');
    const absl::Status status =
        product_->Run(&x_bytes_[first * weights_.weight.cols * element_], rows,
                      y.data(), scratch_.data());
    EXPECT_TRUE(status.ok()) << status;
    return y;
  }

  int32_t ColumnPartsOfProduct() const { return product_->column_parts(); }

  // The same, by parts of the columns.
  std::string RunByColumns(int64_t first, int64_t rows) {
    const int64_t row_bytes = weights_.weight.rows * element_;
    const int64_t bytes = row_bytes / product_->column_parts();
    std::string y(rows * row_bytes, '\0'), some(rows * bytes, '\0');
    for (int32_t part = 0; part < product_->column_parts(); ++part) {
      const absl::Status status = product_->RunColumns(
          &x_bytes_[first * weights_.weight.cols * element_], rows, part,
          some.data(), scratch_.data());
      EXPECT_TRUE(status.ok()) << status;
      for (int64_t r = 0; r < rows; ++r) {
        y.replace(r * row_bytes + part * bytes, bytes,
                  some.substr(r * bytes, bytes));
      }
    }
    return y;
  }

  // Whatever number of few rows; parts: as many as two threads can share.
  void ExpectColumnsIndependent(int64_t in, int64_t out) {
    constexpr int64_t kFirst = 3;
    Prepare(in, out, kFirst + kFewRows);
    EXPECT_EQ(product_->column_parts() % 2, 0) << in << " to " << out;
    for (int64_t rows = 1; rows <= kFewRows; ++rows) {
      EXPECT_EQ(RunByColumns(kFirst, rows), Run(kFirst, rows))
          << in << " to " << out << ", " << rows << " rows";
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

  void ExpectEqualsReference(int64_t in, int64_t out, int64_t rows) {
    Prepare(in, out, rows);
    const std::string y = Run(0, rows);
    const double tolerance = element_ == 4 ? kFp32Op : kBf16Op;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t o = 0; o < out; ++o) {
        double want = weights_.bias[o];
        for (int64_t k = 0; k < in; ++k)
          want += double{x_[r * in + k]} * weights_.weight.Row(o)[k];
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

 private:
  LinearWeights weights_;
  std::vector<float> x_;
  std::string x_bytes_;
  std::unique_ptr<ProductFactory> factory_;
  std::unique_ptr<Product> product_;
  AlignedBuffer scratch_;
  int64_t element_ = 4;
};

TEST_P(ProductTest, EqualsTheReferenceAtOddShapes) {
  for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {7, 21}, {75, 77}, {32, 96}, {130, 17}, {384, 384}}) {
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
  Prepare(75, 77, 1);
  EXPECT_EQ(ColumnPartsOfProduct(), 1);
  if (GetParam().isa == Isa::kPortable) return;  // slow here, the same code
  ExpectColumnsIndependent(768, 2304);
  ExpectColumnsIndependent(768, 3072);
  ExpectColumnsIndependent(3072, 768);
  ExpectColumnsIndependent(1152, 768);
  ExpectColumnsIndependent(1024, 4096);
  ExpectColumnsIndependent(4096, 1024);
}

TEST(ColumnPartsTest, AreEqualAndManyAndEvenIfThatCostsFew) {
  for (const auto& [blocks, parts] :
       std::vector<std::pair<int64_t, int32_t>>{{1, 1},
                                                {2, 2},
                                                {3, 3},
                                                {6, 6},
                                                {9, 9},
                                                {13, 13},
                                                {14, 7},
                                                {18, 6},
                                                {24, 12},
                                                {26, 13},
                                                {48, 12},
                                                {82, 41}}) {
    EXPECT_EQ(ColumnParts(blocks), parts) << blocks << " blocks";
  }
}

TEST_P(ProductTest, KeepsARowsBitsAtOddShapes) {
  ExpectRowsIndependent(75, 77);
  ExpectRowsIndependent(33, 7);
}

INSTANTIATE_TEST_SUITE_P(Devices, ProductTest,
                         ::testing::ValuesIn(TestDevices()),
                         [](const ::testing::TestParamInfo<TestDevice>& info) {
                           return TestDeviceName(info.param);
                         });

}  // namespace
}  // namespace cpu
}  // namespace encoderd
