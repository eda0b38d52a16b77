// Rows in e4m3: the format, the kernel that makes them, products of them.
#include <cmath>

#include "tests/support/tolerances.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

// The value of a code by the format's definition; 0x7f and 0xff are no number.
double ValueOf(int code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  const double size = exponent == 0 ? std::ldexp(fraction, -9)
                                    : std::ldexp(8 + fraction, exponent - 10);
  return code < 0x80 ? size : -size;
}

// The engine's and the tests' own conversion, which are written apart.
void ExpectCode(float value, int code) {
  ASSERT_EQ(NarrowToE4m3(value), code) << value;
  ASSERT_EQ(emulation::ToE4m3(value), code) << value;
}

TEST(E4m3Test, GivesEveryCodeItsValueAndBack) {
  EXPECT_EQ(ValueOf(0x7e), kLargestE4m3);
  for (int code = 0; code < 256; ++code) {
    const float value = emulation::FromE4m3(static_cast<uint8_t>(code));
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << code;
      ExpectCode(value, 0x7f);
    } else {
      EXPECT_EQ(value, ValueOf(code)) << code;
      ExpectCode(value, code);
    }
  }
}

TEST(E4m3Test, RoundsToTheNearestAndTiesToTheEvenCode) {
  for (int code = 0; code < 0x7e; ++code) {
    const auto middle =
        static_cast<float>((ValueOf(code) + ValueOf(code + 1)) / 2);
    for (const int sign : {0, 0x80}) {
      const float way = sign == 0 ? 1.0f : -1.0f;
      ExpectCode(way * middle, sign + code + code % 2);
      ExpectCode(way * std::nextafter(middle, 0.0f), sign + code);
      ExpectCode(way * std::nextafter(middle, 1e3f), sign + code + 1);
    }
  }
  for (const float large : {449.0f, 463.9f, 464.0f, 1e30f, HUGE_VALF}) {
    ExpectCode(large, 0x7e);
    ExpectCode(-large, 0xfe);
  }
  ExpectCode(1e-40f, 0);
}

struct QuantizedRows {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
};

QuantizedRows Quantize(const std::vector<float>& x, int32_t cols, DType dtype) {
  const int64_t rows = static_cast<int64_t>(x.size()) / cols;
  const OnCard from(x, dtype);
  const OnCard to(E4m3RowsBytes(rows, cols));
  const QuantizeRowsOp op = {from.View(rows, cols, dtype), to.data()};
  EXPECT_EQ(Start(op, nullptr), 0);
  const std::vector<char> bytes = to.Bytes();
  QuantizedRows got = {{bytes.begin(), bytes.begin() + rows * cols},
                       std::vector<float>(rows)};
  std::memcpy(got.scales.data(), bytes.data() + rows * cols, 4 * rows);
  return got;
}

TEST(QuantizeRowsOpTest, ScalesEachRowByItsLargestAtEveryWidth) {
  std::mt19937 random(1);
  for (const DType dtype : kDTypes) {
    for (const int32_t cols : {16, 32, 256, 384, 528, 4096, 5008}) {
      const int64_t rows = 5;  // not a multiple of a block's
      const auto x = RandomValues(rows * cols, dtype, &random);
      const QuantizedRows got = Quantize(x, cols, dtype);
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = x.data() + r * cols;
        float largest = 0;
        for (int32_t c = 0; c < cols; ++c)
          largest = std::max(largest, std::fabs(row[c]));
        ASSERT_EQ(got.scales[r], largest / 448.0f);
        for (int32_t c = 0; c < cols; ++c) {
          const uint8_t code = got.codes[r * cols + c];
          ASSERT_EQ(code, emulation::ToE4m3(row[c] * (448.0f / largest)));
          // Half a unit of 4 bits, or of the least value.
          ASSERT_NEAR(got.scales[r] * ValueOf(code), row[c],
                      std::max(std::fabs(row[c]) * 0x1.01p-4f,
                               got.scales[r] * 0x1p-10f));
        }
      }
    }
  }
}

// With 448 in a row its scale is 1, and the codes are those of the values.
TEST(QuantizeRowsOpTest, RoundsAsTheHostDoes) {
  for (const DType dtype : kDTypes) {
    std::vector<float> x = {448.0f};
    for (int code = 0; code < 0x7e; ++code) {
      const auto middle =
          static_cast<float>((ValueOf(code) + ValueOf(code + 1)) / 2);
      const auto step = static_cast<float>(Epsilon(dtype) * 4);
      for (const float sign : {1.0f, -1.0f}) {
        x.push_back(sign * static_cast<float>(ValueOf(code)));
        x.push_back(sign * middle);
        x.push_back(Rounded(sign * middle * (1 + step), dtype));
        x.push_back(Rounded(sign * middle * (1 - step), dtype));
      }
    }
    x.resize((x.size() + 15) / 16 * 16);
    const QuantizedRows got =
        Quantize(x, static_cast<int32_t>(x.size()), dtype);
    EXPECT_EQ(got.scales[0], 1.0f);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(got.codes[i], NarrowToE4m3(x[i])) << x[i];
  }
}

TEST(QuantizeRowsOpTest, GivesARowTheSameBitsInAnyBatchAndAsTheHostDoes) {
  std::mt19937 random(2);
  const int32_t cols = 272;
  const auto x = RandomValues(9 * cols, DType::kBF16, &random);
  const QuantizedRows all = Quantize(x, cols, DType::kBF16);
  for (int64_t r = 0; r < 9; ++r) {
    const std::vector<float> row(x.begin() + r * cols,
                                 x.begin() + (r + 1) * cols);
    const QuantizedRows alone = Quantize(row, cols, DType::kBF16);
    EXPECT_EQ(alone.scales[0], all.scales[r]);
    EXPECT_EQ(
        std::memcmp(alone.codes.data(), all.codes.data() + r * cols, cols), 0);
    const std::vector<char> host = NarrowRowsToE4m3(row, cols);
    EXPECT_EQ(std::memcmp(alone.codes.data(), host.data(), cols), 0);
    EXPECT_EQ(std::memcmp(&alone.scales[0], host.data() + cols, 4), 0);
  }
}

TEST(QuantizeRowsOpTest, KeepsZerosFiniteAndInfinitiesVisible) {
  const int32_t cols = 32;
  std::vector<float> x(5 * cols, 0.0f);
  x[1 * cols + 3] = 0x1p-20f;  // alone
  x[2 * cols + 5] = HUGE_VALF;
  x[2 * cols + 6] = 2.0f;
  x[3 * cols + 7] = NAN;
  x[3 * cols + 8] = -2.0f;
  x[4 * cols + 9] = -1.0f;
  for (const DType dtype : kDTypes) {
    const QuantizedRows got = Quantize(x, cols, dtype);
    const auto code = [&](int row, int column) {
      return static_cast<int>(got.codes[row * cols + column]);
    };
    for (int c = 0; c < cols; ++c) EXPECT_EQ(code(0, c), 0);
    EXPECT_GT(got.scales[0], 0.0f);
    EXPECT_EQ(code(1, 3), 0x7e);
    EXPECT_EQ(code(2, 5), 0x7f);
    EXPECT_EQ(code(3, 7), 0x7f);
    EXPECT_EQ(code(3, 8), 0xfe);
    EXPECT_EQ(code(4, 9), 0xfe);
    EXPECT_EQ(got.scales[4], 1.0f / 448.0f);
  }
}

TEST(E4m3ProductTest, EqualsItsFormulaWithAndWithoutABias) {
  if (!HasE4m3()) GTEST_SKIP() << "fp8 products need compute capability 9.0";
  std::mt19937 random(3);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const int64_t in : {32, 384}) {
      for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kBias}) {
        const int64_t out = 144;
        const auto weight = RandomValues(out * in, DType::kF32, &random);
        const auto bias = RandomValues(out, dtype, &random);
        const std::vector<char> rounded = NarrowRowsToE4m3(weight, in);
        const OnCard weights = OnCard::Of(rounded), biases(bias, dtype);
        ProductArgs args;
        args.element = dtype;
        args.in = in;
        args.out = out;
        args.epilogue = epilogue;
        args.weight = weights.data();
        args.bias = epilogue == Epilogue::kBias ? biases.data() : nullptr;
        args.operands = Operands::kE4m3;
        const auto products = TestProducts();
        const OnCard workspace(
            std::max<int64_t>(1, products->workspace_bytes()));
        const auto created = products->Create(args);
        ASSERT_TRUE(created.ok()) << created.status();
        const auto& product = *created;
        for (const int64_t rows : {1, 7, 64}) {
          const auto x = RandomValues(rows * in, dtype, &random);
          const std::vector<char> from = NarrowRowsToE4m3(x, in);
          const OnCard y(rows * out * DTypeBytes(dtype));
          ASSERT_TRUE(product
                          ->Run(OnCard::Of(from).data(), rows, y.data(),
                                OpStream(nullptr, false, workspace.data()))
                          .ok());
          const auto value = [&](const std::vector<char>& bytes, int64_t row,
                                 int64_t k) {
            float scale = 0;
            const int64_t count = static_cast<int64_t>(bytes.size()) / (in + 4);
            std::memcpy(&scale, bytes.data() + count * in + 4 * row, 4);
            return scale * ValueOf(static_cast<uint8_t>(bytes[row * in + k]));
          };
          const std::vector<float> got = y.Values(dtype);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t n = 0; n < out; ++n) {
              double want = 0, size = 0;
              for (int64_t k = 0; k < in; ++k) {
                const double term = value(from, r, k) * value(rounded, n, k);
                want += term;
                size += std::fabs(term);
              }
              if (epilogue == Epilogue::kBias) want += bias[n];
              // The sum, and one rounding to 16 bits.
              const double of_sum = IsEmulated() ? 1e-6 : kE4m3SumLoss;
              ASSERT_NEAR(got[r * out + n], want,
                          size * of_sum + std::fabs(want) * Epsilon(dtype))
                  << in << " " << rows << " " << r << " " << n;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
