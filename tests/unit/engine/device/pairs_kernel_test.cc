// bf16 multiplied as floats gives the bits of vdpbf16ps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/cpu_info.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/product.h"
#include "tests/support/narrow.h"

namespace encoderd {
namespace cpu {
namespace {

class PairsKernelTest : public ::testing::Test {
 protected:
  static constexpr int64_t kGuard = 256;  // bytes after the scratch

  void SetUp() override {
    if (DetectIsa() < Isa::kAvx512Bf16 || Avx512Bf16Kernels() == nullptr)
      GTEST_SKIP() << "this CPU has no avx512_bf16";
  }

  // bf16 of either sign; `exponents`: how far their magnitudes spread.
  std::string Random(int64_t count, int32_t exponents) {
    std::uniform_int_distribution<int32_t> exponent(-exponents, exponents);
    std::uniform_real_distribution<float> fraction(-2, 2);
    std::string bytes(count * 2, '\0');
    for (int64_t i = 0; i < count; ++i) {
      const uint16_t value =
          emulation::ToBf16(std::ldexp(fraction(random_), exponent(random_)));
      std::memcpy(&bytes[i * 2], &value, 2);
    }
    return bytes;
  }

  // y of `rows` rows of x by the weights, with the kernels of a table.
  static std::string Multiply(const ProductKernels& kernels,
                              const LinearWeights& weights,
                              Activation activation, std::string x,
                              int64_t rows) {
    const int64_t in = weights.weight.cols, out = weights.weight.rows;
    WeightMemory memory;
    const auto product = Product::Create(kernels, weights, activation, &memory);
    EXPECT_TRUE(product.ok()) << product.status();
    if (!product.ok()) return "";
    const int64_t bytes = product->scratch_bytes(rows);
    const AlignedBuffer scratch(bytes + kGuard);
    std::memset(static_cast<char*>(scratch.data()) + bytes, 0x5a, kGuard);
    std::string y(rows * out * 2, '\0');
    // By parts of the panels, as threads share them.
    const int64_t panels = product->panels(), parts = rows < 9 ? 3 : 1;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = panels * part / parts;
      product->Run({x.data(), rows, in, DType::kBF16},
                   {first, panels * (part + 1) / parts - first},
                   {y.data(), rows, out, DType::kBF16}, scratch.data());
    }
    EXPECT_EQ(std::string(static_cast<char*>(scratch.data()) + bytes, kGuard),
              std::string(kGuard, 0x5a));
    return y;
  }

  static std::string Attend(const Kernels& kernels, std::string qkv, int64_t n,
                            int64_t heads, int64_t size, Reach reach) {
    std::string context(n * heads * size * 2, '\0');
    const int64_t bytes = kernels.attention_scratch_bytes(n, size);
    const AlignedBuffer scratch(bytes + kGuard);
    std::memset(static_cast<char*>(scratch.data()) + bytes, 0x5a, kGuard);
    const std::vector<float> biases(heads * (2 * n + kBiasPadding), 0.25f);
    AttentionOp op;
    op.bias = biases.data() + n;
    op.bias_stride = static_cast<int32_t>(2 * n + kBiasPadding);
    op.qkv = {qkv.data(), n, 3 * heads * size, DType::kBF16};
    op.heads = static_cast<int32_t>(heads);
    op.head_size = static_cast<int32_t>(size);
    op.reach = reach;
    op.context = {context.data(), n, heads * size, DType::kBF16};
    static_cast<const Kernel<AttentionOp>&>(kernels).run(op, scratch.data());
    EXPECT_EQ(std::string(static_cast<char*>(scratch.data()) + bytes, kGuard),
              std::string(kGuard, 0x5a));
    return context;
  }

  std::mt19937 random_{11};
};

TEST_F(PairsKernelTest, ProductsHaveTheBitsOfTheInstruction) {
  std::normal_distribution<float> normal;
  for (const int64_t in : {1, 2, 7, 64, 385, 1024, 1025, 3072}) {
    for (const int64_t out : {1, 48, 97, 128}) {
      LinearWeights weights;
      weights.weight = {out, in, std::vector<float>(out * in)};
      for (float& value : weights.weight.data) value = normal(random_);
      weights.bias.resize(out);
      for (float& value : weights.bias) value = normal(random_);
      for (const int64_t rows : {1, 8, 23, 128}) {
        for (const int32_t exponents : {0, 10}) {
          const std::string x = Random(rows * in, exponents);
          for (const Activation activation :
               {Activation::kNone, Activation::kGeluErf}) {
            EXPECT_EQ(
                Multiply(*Avx512Kernels(DType::kBF16), weights, activation, x,
                         rows),
                Multiply(*Avx512Bf16Kernels(), weights, activation, x, rows))
                << rows << " rows, " << in << " to " << out << ", 2^"
                << exponents;
          }
        }
      }
    }
  }
}

// Their rounding alone differs. Values of a few units, so that none of an
// activation is below 2^-126, where they differ.
TEST_F(PairsKernelTest, Int8ProductsHaveTheBitsOfTheInstruction) {
  if (!HasVnni()) GTEST_SKIP() << "this CPU has no avx512_vnni";
  ASSERT_NE(Avx512VnniProducts(), nullptr);
  ASSERT_NE(Avx512VnniBf16Products(), nullptr);
  for (const int64_t in : {1, 64, 385, 1536}) {
    std::normal_distribution<float> normal(0, 1 / std::sqrt(1.0f * in));
    for (const int64_t out : {1, 48, 97}) {
      LinearWeights weights;
      weights.weight = {out, in, std::vector<float>(out * in)};
      for (float& value : weights.weight.data) value = normal(random_);
      weights.bias.assign(out, 0.5f);
      weights.allow_int8 = true;
      for (const int64_t rows : {1, 23, 128}) {
        const std::string x = Random(rows * in, 0);
        for (const Activation activation :
             {Activation::kNone, Activation::kGeluErf, Activation::kGeluTanh,
              Activation::kRelu}) {
          EXPECT_EQ(
              Multiply(*Avx512VnniProducts(), weights, activation, x, rows),
              Multiply(*Avx512VnniBf16Products(), weights, activation, x, rows))
              << rows << " rows, " << in << " to " << out;
        }
      }
    }
  }
}

TEST_F(PairsKernelTest, AttentionHasTheBitsOfTheInstruction) {
  for (const int64_t size : {2, 25, 32, 64, 80}) {
    for (const int64_t n : {1, 2, 17, 24, 25, 131, 300}) {
      const std::string qkv = Random(n * 3 * 2 * size, 1);
      for (const Reach& reach : {Reach(), Reach{-1, 0}, Reach{9, 12}}) {
        EXPECT_EQ(Attend(*Avx512Kernels(DType::kBF16), qkv, n, 2, size, reach),
                  Attend(*Avx512Bf16Kernels(), qkv, n, 2, size, reach))
            << n << " tokens, heads of " << size << ", reach " << reach.left
            << ", " << reach.right;
      }
    }
  }
}

TEST(ProductScratchTest, WidensOneBlockOfColumnsAtATime) {
  const Kernels& kernels = *PortableKernels(DType::kBF16);
  const auto bytes = [&](int64_t in) {
    return kernels.product_scratch_bytes(kProductRows, in, 0);
  };
  EXPECT_EQ(bytes(1024), kProductRows * 1024 * 4);
  EXPECT_LE(bytes(4096), kProductRows * (1024 + kernels.panel_columns) * 4);
}

// Sums of a block alone never leave its tile.
TEST(ProductScratchTest, KeepsNoSumsForTheInputsOfABaseModel) {
  const Kernels& kernels = *PortableKernels(DType::kF32);
  EXPECT_EQ(kernels.product_scratch_bytes(kProductRows, 768, 3072), 0);
  EXPECT_GT(kernels.product_scratch_bytes(kProductRows, 769, 3072), 0);
}

}  // namespace
}  // namespace cpu
}  // namespace encoderd
