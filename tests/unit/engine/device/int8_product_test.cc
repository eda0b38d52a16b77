// Products in 8 bits: equal to integer arithmetic bit for bit, whatever the
// number of rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/cpu_info.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/product.h"
#include "engine/device/device.h"
#include "tests/support/narrow.h"

namespace encoderd {
namespace cpu {
namespace {

using emulation::FromBf16;
using emulation::ToBf16;

// By the kernels for CPUs without avx512_bf16, and for those with it.
class Int8ProductTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!HasVnni() || !HasIsa(GetParam()) || Kernels() == nullptr) {
      GTEST_SKIP() << "this CPU lacks avx512_vnni or " << IsaName(GetParam());
    }
  }

  static const ProductKernels* Kernels() {
    return GetParam() >= Isa::kAvx512Bf16 ? Avx512VnniBf16Products()
                                          : Avx512VnniProducts();
  }

  // Values of rows reach from -1 to 3, so that 0 is not in their middle.
  void Prepare(int64_t in, int64_t out, int64_t rows) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> values(-1, 3);
    weights_.weight = {out, in, std::vector<float>(out * in)};
    weights_.bias.resize(out);
    weights_.allow_int8 = true;
    for (float& value : weights_.weight.data) value = values(random) - 1;
    for (float& value : weights_.bias) value = values(random);
    x_.resize(rows * in);
    for (uint16_t& value : x_) value = ToBf16(values(random));
    product_ =
        Product::Create(*Kernels(), weights_, Activation::kNone, &memory_);
    ASSERT_TRUE(product_.ok()) << product_.status();
    scratch_ = AlignedBuffer(product_->scratch_bytes(rows));
  }

  // By `parts` parts of the panels.
  std::vector<uint16_t> Run(int64_t first, int64_t rows, int64_t parts = 1) {
    const int64_t in = weights_.weight.cols, out = weights_.weight.rows;
    std::vector<uint16_t> y(rows * out);
    const Matrix from{&x_[first * in], rows, in, DType::kBF16};
    const Matrix to{y.data(), rows, out, DType::kBF16};
    const int64_t panels = product_->panels();
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = panels * part / parts;
      product_->Run(from, {begin, panels * (part + 1) / parts - begin}, to,
                    scratch_.data());
    }
    return y;
  }

  // Blocks of 8 vectors of 16 columns.
  static void Rotate(float scale, std::vector<float>* values) {
    const size_t whole = values->size() / 128 * 128;
    for (size_t apart = 16; apart < 128; apart *= 2) {
      for (size_t h = 0; h < whole; ++h) {
        if (h & apart) continue;
        float& a = (*values)[h];
        float& b = (*values)[h + apart];
        std::tie(a, b) = std::make_pair(a + b, a - b);
      }
    }
    for (size_t h = 0; h < whole; ++h) (*values)[h] *= scale;
  }

  // What the codes of `values` stand for; as int8_kernel.h says.
  struct Codes {
    std::vector<int64_t> code;  // minus that of 0
    float scale;
  };
  static Codes CodesOf(std::vector<float> values, bool steps_of_255) {
    Rotate(steps_of_255 ? 1 : 0.125f, &values);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const float most = std::max(*high, 0.0f), least = std::max(-*low, 0.0f);
    const float steps = steps_of_255 ? 255.0f : 127.0f;
    const float span = std::max(
        steps_of_255 ? most + least : std::max(most, least), 0x1p-100f);
    const float factor = steps / span;
    const auto whole = [&](float value) {  // one rounding, to an integer
      return std::fma(value, factor, 12582912.0f) - 12582912.0f;
    };
    const float zero = steps_of_255 ? whole(least) : 0;
    Codes codes = {{}, span / steps};
    for (const float value : values) {
      const float code = steps_of_255 ? std::min(whole(value), 255.0f - zero)
                                      : std::rint(value * factor);
      codes.code.push_back(static_cast<int64_t>(code));
    }
    return codes;
  }

  std::vector<uint16_t> Want(int64_t row) const {
    const int64_t in = weights_.weight.cols;
    std::vector<float> x(in), y;
    for (int64_t k = 0; k < in; ++k) x[k] = FromBf16(x_[row * in + k]);
    const Codes a = CodesOf(x, true);
    std::vector<uint16_t> want;
    for (int64_t o = 0; o < weights_.weight.rows; ++o) {
      const float* w = weights_.weight.Row(o);
      const Codes b = CodesOf({w, w + in}, false);
      int64_t sum = 0;
      for (int64_t k = 0; k < in; ++k) sum += a.code[k] * b.code[k];
      want.push_back(ToBf16(std::fma(static_cast<float>(sum), b.scale * a.scale,
                                     weights_.bias[o])));
    }
    return want;
  }

  void ExpectRowsIndependent(int64_t in, int64_t out) {
    constexpr int64_t kRows = 150, kFirst = 13;
    Prepare(in, out, kRows);
    const std::vector<uint16_t> all = Run(0, kRows);
    for (int64_t rows = 1; rows <= kRows - kFirst; ++rows) {
      const auto begin = all.begin() + kFirst * out;
      ASSERT_EQ(Run(kFirst, rows),
                std::vector<uint16_t>(begin, begin + rows * out))
          << in << " to " << out << ", " << rows << " rows";
    }
  }

  LinearWeights weights_;
  WeightMemory memory_;
  std::vector<uint16_t> x_;
  absl::StatusOr<Product> product_ = absl::UnknownError("not prepared");
  AlignedBuffer scratch_;
};

TEST_P(Int8ProductTest, EqualsIntegerArithmeticBitForBit) {
  for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {7, 21}, {75, 77}, {64, 64}, {130, 17}, {384, 100}}) {
    constexpr int64_t kRows = 131;
    Prepare(in, out, kRows);
    std::fill_n(x_.begin(), in, 0);  // a row of zeros
    const std::vector<uint16_t> y = Run(0, kRows);
    for (const int64_t row : {0, 1, 25, 130}) {
      const auto begin = y.begin() + row * out;
      EXPECT_EQ(std::vector<uint16_t>(begin, begin + out), Want(row))
          << in << " to " << out << ", row " << row;
    }
  }
}

TEST_P(Int8ProductTest, KeepsARowsBitsAtEveryNumberOfRows) {
  ExpectRowsIndependent(384, 1152);
  ExpectRowsIndependent(1536, 384);
  ExpectRowsIndependent(768, 768);
  ExpectRowsIndependent(75, 77);
  ExpectRowsIndependent(33, 7);
}

TEST_P(Int8ProductTest, PartsOfTheColumnsHaveTheBitsOfTheWhole) {
  for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{
           {384, 1152}, {384, 384}, {384, 1536}, {1536, 384}, {768, 768}}) {
    Prepare(in, out, 3 + kProductRows);
    std::vector<int64_t> counts(32);
    std::iota(counts.begin(), counts.end(), 1);
    counts.insert(counts.end(), {47, 49, 64, kProductRows});
    for (const int64_t rows : counts) {
      const std::vector<uint16_t> whole = Run(3, rows);
      for (const int64_t parts : {2, 3, 5})
        ASSERT_EQ(Run(3, rows, parts), whole) << rows << " rows";
    }
  }
}

TEST_P(Int8ProductTest, ANaNStaysOneInItsRowAlone) {
  for (const int64_t place : {0, 5, 31, 383, 389}) {
    Prepare(390, 64, 3);
    const std::vector<uint16_t> before = Run(0, 3);
    x_[390 + place] = 0x7fc0;
    const std::vector<uint16_t> y = Run(0, 3);
    for (int64_t o = 0; o < 64; ++o) {
      EXPECT_EQ(y[o], before[o]);
      EXPECT_TRUE(std::isnan(FromBf16(y[64 + o]))) << place << ", " << o;
      EXPECT_EQ(y[128 + o], before[128 + o]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Int8ProductTest,
                         ::testing::Values(Isa::kAvx512, Isa::kAvx512Bf16),
                         [](const auto& info) {
                           return std::string(IsaName(info.param));
                         });

TEST(Int8DeviceTest, RefusesProductsWhoseSumsCouldOverflow) {
  const auto device = OpenDevice("cpu", "auto", "", "int8");
  if (!device.ok()) GTEST_SKIP() << device.status();
  LinearWeights weights;
  weights.allow_int8 = true;
  weights.bias = {0};
  const auto prepare = [&](int64_t columns) {
    weights.weight = {1, columns, std::vector<float>(columns, 1)};
    return (*device)->PrepareLinear(weights, Activation::kNone).status();
  };
  EXPECT_TRUE(prepare(kMostInt8Columns).ok());
  const absl::Status refused = prepare(kMostInt8Columns + 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(refused.message(),
            "int8 products of 66312 columns are not supported; at most 66311; "
            "choose products dtype");
}

}  // namespace
}  // namespace cpu
}  // namespace encoderd
