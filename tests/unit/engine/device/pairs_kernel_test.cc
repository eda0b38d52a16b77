// bf16 multiplied as floats gives the bits of vdpbf16ps, if no number is below
// 2^-126.
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
  void SetUp() override {
    if (DetectIsa() < Isa::kAvx512Bf16 || Avx512Bf16Kernels() == nullptr)
      GTEST_SKIP() << "this CPU has no avx512_bf16";
  }

  // bf16 of either sign, between 2^-exponents and 2^exponents.
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
    const auto product = Product::Create(kernels, weights, activation);
    EXPECT_TRUE(product.ok()) << product.status();
    if (!product.ok()) return "";
    const AlignedBuffer scratch(product->scratch_bytes(rows));
    std::string y(rows * out * 2, '\0');
    product->Run({x.data(), rows, in, DType::kBF16},
                 {y.data(), rows, out, DType::kBF16}, scratch.data());
    return y;
  }

  static std::string Attend(const Kernels& kernels, std::string qkv, int64_t n,
                            int64_t heads, int64_t size, Reach reach) {
    std::string context(n * heads * size * 2, '\0');
    const AlignedBuffer scratch(kernels.attention_scratch_bytes(n, size));
    AttentionOp op;
    op.qkv = {qkv.data(), n, 3 * heads * size, DType::kBF16};
    op.heads = static_cast<int32_t>(heads);
    op.head_size = static_cast<int32_t>(size);
    op.reach = reach;
    op.context = {context.data(), n, heads * size, DType::kBF16};
    static_cast<const Kernel<AttentionOp>&>(kernels).run(op, scratch.data());
    return context;
  }

  std::mt19937 random_{11};
};

TEST_F(PairsKernelTest, ProductsHaveTheBitsOfTheInstruction) {
  std::normal_distribution<float> normal;
  for (const int64_t in : {1, 2, 7, 64, 385, 1024, 1025, 3072}) {
    for (const int64_t out : {1, 48, 97}) {
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

// Scratch for the widened rows must not grow with the batch.
TEST_F(PairsKernelTest, TakesScratchForOneBlockOfRows) {
  const Kernels& kernels = *Avx512Kernels(DType::kBF16);
  EXPECT_LE(kernels.product_scratch_bytes(kProductRows, 1024, 1024),
            kProductRows * 1024 * 4);
  EXPECT_LE(
      kernels.product_scratch_bytes(kProductRows, 4096, 1024) -
          Avx512Bf16Kernels()->product_scratch_bytes(kProductRows, 4096, 1024),
      kProductRows * 1024 * 4);
}

}  // namespace
}  // namespace cpu
}  // namespace encoderd
