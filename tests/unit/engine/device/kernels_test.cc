// Each kernel of each instruction set against double precision.
#include "engine/device/cpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/product.h"
#include "tests/unit/engine/device/kernel_test.h"

namespace encoderd {
namespace cpu {
namespace {

class KernelsTest : public KernelTest {
 protected:
  // function(x), by a product with a weight of 1.
  std::vector<float> Activate(Activation function, std::vector<float>* x) {
    const auto rows = static_cast<int64_t>(x->size());
    const std::string bytes = Elements(x);
    std::string y(bytes.size(), '\0');
    LinearWeights one;
    one.weight = {1, 1, {1.0f}};
    one.bias = {0.0f};
    WeightMemory memory;
    const absl::StatusOr<Product> product =
        Product::Create(kernels_, one, function, &memory);
    EXPECT_TRUE(product.ok()) << product.status();
    if (product.ok()) {
      product->Run(View(bytes, rows), {0, product->panels()}, View(y, rows),
                   nullptr);
    }
    return Floats(y);
  }

  // Largest difference of `function` from `want`, relative to the spacing of
  // bf16 where that is the type.
  void ExpectElementWise(Activation function, double (*want)(double),
                         double fp32_tolerance) {
    std::vector<float> x;
    for (double v = -12; v <= 12; v += 0.00037) {
      x.push_back(static_cast<float>(v));
    }
    for (float v : {0.0f, -0.0f, 1e-30f, -1e-30f, 1e4f, -1e4f, 1e30f, -1e30f})
      x.push_back(v);
    const std::vector<float> y = Activate(function, &x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = want(x[i]);
      const double rounding =
          std::abs(expected) * (kernels_.bf16 ? 1.0 / 256 : 1.2e-7);
      ASSERT_NEAR(y[i], expected, fp32_tolerance + rounding) << x[i];
    }
  }
};

TEST_P(KernelsTest, ComputesGelu) {
  ExpectElementWise(
      Activation::kGeluErf,
      [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); },
      kernels_.bf16 ? kGeluBf16 : kGelu);
}

TEST_P(KernelsTest, ComputesGeluByTanh) {
  ExpectElementWise(
      Activation::kGeluTanh,
      [](double x) {
        return 0.5 * x *
               (1 +
                std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      },
      kGelu);
}

TEST_P(KernelsTest, ComputesRelu) {
  ExpectElementWise(
      Activation::kRelu, [](double x) { return std::max(x, 0.0); }, 0);
}

TEST_P(KernelsTest, LetsNotANumberThrough) {
  for (const Activation function :
       {Activation::kGeluErf, Activation::kGeluTanh, Activation::kRelu}) {
    std::vector<float> x(17, std::nanf(""));
    for (const float value : Activate(function, &x))
      EXPECT_TRUE(std::isnan(value));
  }
  std::vector<float> qkv(2 * 3 * 4, 1.0f);
  qkv[5] = std::nanf("");  // in token 0's key
  const std::string bytes = Elements(&qkv);
  std::string context(2 * 4 * (kernels_.bf16 ? 2 : 4), '\0');
  const AlignedBuffer scratch(kernels_.attention_scratch_bytes(2, 4));
  AttentionOp op;
  op.qkv = View(bytes, 2);
  op.heads = 1;
  op.head_size = 4;
  op.context = View(context, 2);
  Run(op, scratch.data());
  for (const float value : Floats(context)) EXPECT_TRUE(std::isnan(value));
}

TEST_P(KernelsTest, NormalizesWithATwoPassVariance) {
  for (const int64_t size : {1, 7, 16, 100, 384, 768}) {
    // A mean a thousand times the deviation: E[x^2] - mean^2 would lose it.
    const float shift = kernels_.bf16 ? 4.0f : 1000.0f;
    const int64_t rows = 3;
    std::vector<float> x = Random(rows * size, 1.0f, shift);
    std::vector<float> residual = Random(rows * size, 1.0f);
    const std::vector<float> gain = Random(size, 0.1f, 1.0f);
    const std::vector<float> bias = Random(size, 0.1f);
    std::string bytes = Elements(&x);
    const std::string residual_bytes = Elements(&residual);
    std::vector<float> row(size);
    Run(AddNormOp{View(bytes, rows),
                  View(residual_bytes, rows),
                  {gain.data(), bias.data(), 1e-5f},
                  Matrix(),
                  View(bytes, rows)},
        row.data());
    const std::vector<float> got = Floats(bytes);
    for (int64_t r = 0; r < rows; ++r) {
      double mean = 0, variance = 0;
      std::vector<double> sum(size);
      for (int64_t h = 0; h < size; ++h) {
        // The kernels add in float; near 1000 that is 6e-5 a value.
        sum[h] = x[r * size + h] + residual[r * size + h];
        mean += sum[h] / static_cast<double>(size);
      }
      for (const double value : sum)
        variance += (value - mean) * (value - mean) / static_cast<double>(size);
      for (int64_t h = 0; h < size; ++h) {
        const double want =
            (sum[h] - mean) / std::sqrt(variance + 1e-5) * gain[h] + bias[h];
        // Near 1000 a float's spacing is 6e-5, and the mean has that error.
        const double allowed =
            kernels_.bf16 ? kBf16Op : (size == 1 ? 0.05 : 5e-4);
        ASSERT_NEAR(got[r * size + h], want, allowed)
            << "size " << size << ", row " << r << ", value " << h;
      }
    }
  }
}

TEST_P(KernelsTest, EmbedsTokenPositionAndSegment) {
  const int64_t size = 40;
  const std::vector<float> token = Random(5 * size, 1.0f);
  const std::vector<float> position = Random(4 * size, 1.0f);
  const std::vector<float> segment = Random(2 * size, 1.0f);
  const std::vector<float> gain = Random(size, 0.1f, 1.0f);
  const std::vector<float> bias = Random(size, 0.1f);
  const std::vector<int32_t> tokens = {4, 0, 4}, positions = {3, 1, 0},
                             segments = {1, 0, 1};
  for (const bool with_segments : {true, false}) {
    std::vector<float> row(size);
    std::string out(3 * size * (kernels_.bf16 ? 2 : 4), '\0');
    Run(EmbedOp{{token.data(), position.data(),
                 with_segments ? segment.data() : nullptr},
                {3, tokens.data(), positions.data(), segments.data()},
                {gain.data(), bias.data(), 1e-12f},
                View(out, 3)},
        row.data());
    const std::vector<float> got = Floats(out);
    for (int64_t r = 0; r < 3; ++r) {
      double mean = 0, variance = 0;
      std::vector<double> sum(size);
      for (int64_t h = 0; h < size; ++h) {
        sum[h] = double{token[tokens[r] * size + h]} +
                 position[positions[r] * size + h] +
                 (with_segments ? segment[segments[r] * size + h] : 0);
        mean += sum[h] / size;
      }
      for (const double value : sum)
        variance += (value - mean) * (value - mean) / size;
      for (int64_t h = 0; h < size; ++h) {
        ASSERT_NEAR(got[r * size + h],
                    (sum[h] - mean) / std::sqrt(variance) * gain[h] + bias[h],
                    tolerance())
            << "row " << r << ", value " << h;
      }
    }
  }
}

// Of 65,536 rows, one for each value: the other columns are others.
TEST_P(KernelsTest, EmbedsEveryHalfAsTheFloatThatItIs) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const int64_t size : {int64_t{21}, int64_t{16}}) {
      const auto exponent =
          static_cast<uint16_t>(dtype == DType::kF16 ? 0x7c00 : 0x7f80);
      HostTable table(65536, size, dtype);
      for (int64_t i = 0; i < 65536 * size; ++i) {
        // Column 0 counts.
        const auto bits = static_cast<uint16_t>(i / size + i % size * 40503);
        const bool finite = (bits & exponent) != exponent;
        table.halves[i] = finite ? bits : static_cast<uint16_t>(bits & 0x83ff);
      }
      const HostMatrix floats = table.Widened();
      std::vector<int32_t> ids(65536);
      std::iota(ids.begin(), ids.end(), 0);
      const std::vector<float> gain = Random(size, 0.1f, 1.0f);
      const std::vector<float> bias = Random(size, 0.1f);
      for (const bool norm : {false, true}) {
        const auto embed = [&](const void* rows, DType of_rows) {
          std::vector<float> row(size);
          std::string out(65536 * size * (kernels_.bf16 ? 2 : 4), '\0');
          EmbedOp op;
          op.tables = {rows, nullptr, nullptr, of_rows};
          op.batch = {65536, ids.data(), ids.data(), ids.data()};
          if (norm) op.norm = {gain.data(), bias.data(), 1e-12f};
          op.out = View(out, 65536);
          Run(op, row.data());
          return out;
        };
        EXPECT_EQ(embed(table.data(), dtype) ==
                      embed(floats.data.data(), DType::kF32),
                  true)
            << DTypeName(dtype) << ", " << size << " columns, norm " << norm;
      }
    }
  }
}

TEST_P(KernelsTest, SumsRowsOf16BitsAsFloats) {
  const int64_t size = 40;
  const std::vector<int32_t> tokens = {4, 0, 4}, positions = {3, 1, 0},
                             segments = {1, 0, 1};
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    HostTable tables[3];
    for (HostTable& table : tables) {
      table = HostTable(5, size, dtype);
      for (uint16_t& bits : table.halves)
        bits = static_cast<uint16_t>(random_() & 0xbfff);  // below 2
    }
    const auto sum = [&](const void* token, const void* position,
                         const void* segment, DType of_rows) {
      std::vector<float> row(size);
      std::string out(3 * size * (kernels_.bf16 ? 2 : 4), '\0');
      Run(EmbedOp{{token, position, segment, of_rows},
                  {3, tokens.data(), positions.data(), segments.data()},
                  NormRef(),
                  View(out, 3)},
          row.data());
      return out;
    };
    const HostMatrix floats[] = {tables[0].Widened(), tables[1].Widened(),
                                 tables[2].Widened()};
    EXPECT_EQ(sum(tables[0].data(), tables[1].data(), tables[2].data(), dtype),
              sum(floats[0].data.data(), floats[1].data.data(),
                  floats[2].data.data(), DType::kF32))
        << DTypeName(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, KernelsTest,
                         ::testing::ValuesIn(TestDevices()), KernelTestName);

}  // namespace
}  // namespace cpu
}  // namespace encoderd
