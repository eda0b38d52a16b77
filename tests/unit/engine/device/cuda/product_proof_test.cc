// What a product shows, over loops on the host: those that are right pass, each
// fault is found.
#include "engine/device/cuda/products/product_proof.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/cuda/emulated_card.h"
#include "tests/unit/engine/device/cuda/fake_library.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMostRows = 40;

// A product whose every run a test may change afterwards.
class Changed : public Product {
 public:
  using Change = std::function<void(int64_t rows, uint16_t* y)>;
  Changed(const Product& product, Change change)
      : product_(product), change_(std::move(change)) {}
  absl::Status Run(const void* x, int64_t rows, void* y,
                   const OpStream& stream) const override {
    const absl::Status status = product_.Run(x, rows, y, stream);
    change_(rows, static_cast<uint16_t*>(y));
    return status;
  }

 private:
  const Product& product_;
  const Change change_;
};

class ProductProofTest : public ::testing::TestWithParam<Operands> {
 protected:
  void SetUp() override {
    ProductArgs args = {DType::kBF16, 32, 48, Epilogue::kBias};
    args.operands = GetParam();
    args.residual = true;
    proof_ = ProductProof::Create(&runtime_, args, kMostRows, 0).value();
    product_ = EmulatedProducts().Create(proof_->args()).value();
  }

  EmulatedRuntime runtime_;
  std::unique_ptr<ProductProof> proof_;
  std::unique_ptr<Product> product_;
};

TEST_P(ProductProofTest, PassesARightProduct) {
  ASSERT_TRUE(proof_->SetReference(*product_).ok());
  EXPECT_TRUE(proof_->CheckResidual(*product_).ok());
  EXPECT_TRUE(proof_->CompareBits(*product_, {1, 3, kMostRows}).ok());
}

TEST_P(ProductProofTest, FindsOneOtherBitInAnyPlaceOfAnyCount) {
  ASSERT_TRUE(proof_->SetReference(*product_).ok());
  for (const int64_t at : {0, 1, 47, 48, 100, 17 * 48 - 1}) {
    const Changed changed(*product_, [at](int64_t rows, uint16_t* y) {
      if (rows == 17) y[at] ^= 1;
    });
    EXPECT_TRUE(proof_->CompareBits(changed, {16, 18}).ok());
    const absl::Status status = proof_->CompareBits(changed, {16, 17});
    EXPECT_EQ(status.message(),
              "other bits at 17 rows: 2 values differ in the 34 rows of 48 "
              "compared");
  }
}

TEST_P(ProductProofTest, FindsAValueThatIsNotWritten) {
  ASSERT_TRUE(proof_->SetReference(*product_).ok());
  const Changed changed(*product_,
                        [](int64_t rows, uint16_t* y) { y[5] = 0xffff; });
  EXPECT_FALSE(proof_->CompareBits(changed, {kMostRows}).ok());
}

TEST_P(ProductProofTest, RefusesAReferenceWhoseRowsDependOnTheirCount) {
  const Changed changed(*product_, [](int64_t rows, uint16_t* y) {
    if (rows == 7) y[6 * 48] ^= 1;
  });
  EXPECT_THAT(std::string(proof_->SetReference(changed).message()),
              HasSubstr("depend on the other rows at 7 rows: 5 values"));
}

// The product's sums, `step` terms at a time, each step added to the rest in
// one rounding; from the last on if backwards.
std::vector<float> SumBySteps(const ProofMatrices& made, int64_t in,
                              int64_t step, bool backwards) {
  const auto rows = static_cast<int64_t>(made.x.size()) / in;
  const auto out = static_cast<int64_t>(made.weight.size()) / in;
  std::vector<float> sums(rows * out);
  for (int64_t i = 0; i < rows * out; ++i) {
    const float* x = &made.x[i / out * in];
    const float* weight = &made.weight[i % out * in];
    for (int64_t s = 0; s < in / step; ++s) {
      const int64_t first = (backwards ? in / step - 1 - s : s) * step;
      double part = 0;
      for (int64_t k = first; k < first + step; ++k)
        part += double{x[k]} * weight[k];
      sums[i] = static_cast<float>(sums[i] + part);
    }
  }
  return sums;
}

// What makes the comparison of bits worth something: the widths of models.
TEST(ProofValuesTest, GiveASumInAnotherOrderOtherBitsInMostValues) {
  for (const int64_t in : {384, 1024, 4096}) {
    const ProductArgs args = {DType::kBF16, in, 24, Epilogue::kBias};
    ProofMatrices made = MakeProofMatrices(ProofValues::kCancelling, args, 16);
    for (std::vector<float>* matrix : {&made.x, &made.weight})
      *matrix = Widen(Narrow(*matrix, DType::kBF16).data(),
                      static_cast<int64_t>(matrix->size()), DType::kBF16);
    const auto bits = [&](int64_t step, bool backwards) {
      return Narrow(SumBySteps(made, in, step, backwards), DType::kBF16);
    };
    const std::vector<char> want = bits(16, false);
    for (const auto& other :
         {bits(8, false), bits(32, false), bits(64, false), bits(16, true)}) {
      int64_t differ = 0;
      for (size_t i = 0; i < want.size(); i += 2)
        differ += std::memcmp(&want[i], &other[i], 2) != 0 ? 1 : 0;
      EXPECT_GT(differ, static_cast<int64_t>(want.size()) / 4) << in;
    }
  }
}

TEST(ProofValuesTest, GiveTypicalSumsOfAboutOneAndASmallBound) {
  EmulatedRuntime runtime;
  for (const int64_t in : {384, 768, 1024}) {
    const ProductArgs args = {DType::kBF16, in, 24, Epilogue::kNone};
    const auto proof =
        ProductProof::Create(&runtime, args, 16, 0, ProofValues::kTypical)
            .value();
    const auto product = EmulatedProducts().Create(proof->args()).value();
    const auto sums = proof->Values(
        [&](const void* x, int64_t rows, void* y, const OpStream& stream) {
          return product->Run(x, rows, y, stream);
        },
        16);
    double squares = 0;
    for (const float sum : *sums) squares += double{sum} * sum;
    const double size = std::sqrt(squares / static_cast<double>(sums->size()));
    EXPECT_GT(size, 0.1) << in;
    EXPECT_LT(size, 3) << in;
    for (int64_t i = 0; i < 16 * 24; ++i)
      EXPECT_LT(proof->SumBound(i / 24, i % 24), 1e-2) << in;
  }
}

TEST(ProductProofResidualTest,
     FindsAResidualLeftOutOrAddedTwiceAtAModelsWidth) {
  EmulatedRuntime runtime;
  ProductArgs args = {DType::kBF16, 4096, 8, Epilogue::kBias};
  args.residual = true;
  const auto proof = ProductProof::Create(&runtime, args, 8, 0).value();
  const auto product = EmulatedProducts().Create(proof->args()).value();
  // Adds it `times` times.
  struct Adding : Product {
    absl::Status Run(const void* x, int64_t rows, void* y,
                     const OpStream& stream) const override {
      return product->Run(x, rows, y, stream);
    }
    bool adds_residual() const override { return true; }
    absl::Status RunAdding(const void* x, int64_t rows, const void* residual,
                           void* y, const OpStream& stream) const override {
      const auto* added = static_cast<const uint16_t*>(residual);
      std::vector<uint16_t> more(rows * 8);
      for (size_t i = 0; i < more.size(); ++i)
        more[i] = emulation::ToBf16(times * emulation::FromBf16(added[i]));
      return product->RunAdding(x, rows, more.data(), y, stream);
    }
    const Product* product;
    float times;
  } adding;
  adding.product = product.get();
  adding.times = 1;
  ASSERT_TRUE(proof->SetReference(adding).ok());
  EXPECT_TRUE(proof->CheckResidual(adding).ok());
  for (const float times : {0.0f, 2.0f, -1.0f}) {
    adding.times = times;
    EXPECT_THAT(std::string(proof->CheckResidual(adding).message()),
                HasSubstr("with a residual added it is off by"));
  }
}

TEST_P(ProductProofTest, GivesBackWhatItTookAndNamesWhatItLacks) {
  ProductArgs args = {DType::kBF16, 32, 48, Epilogue::kBias};
  args.operands = GetParam();
  args.residual = true;
  const int64_t before = runtime_.allocations();
  for (int number = 0; number < 6; ++number) {
    runtime_.Fail("Allocate", 2, number);
    const absl::Status status =
        ProductProof::Create(&runtime_, args, kMostRows, 0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << number;
    EXPECT_THAT(std::string(status.message()), HasSubstr("proving a product"));
    EXPECT_EQ(runtime_.allocations(), before);
  }
  EXPECT_TRUE(ProductProof::Create(&runtime_, args, kMostRows, 0).ok());
}

TEST(ProductProofResidualTest, TakesNoMemoryForAResidualThatNobodyAdds) {
  EmulatedRuntime runtime;
  ProductArgs args = {DType::kBF16, 32, 48, Epilogue::kBias};
  int64_t taken[2];
  for (const bool residual : {false, true}) {
    args.residual = residual;
    const auto proof =
        ProductProof::Create(&runtime, args, kMostRows, 0).value();
    taken[residual ? 1 : 0] = runtime.allocations();
  }
  EXPECT_EQ(taken[1] - taken[0], 2);
}

TEST(ProductProofWorkspaceTest, IsFullOfNaNsBeforeEachRun) {
  EmulatedRuntime runtime;
  const ProductArgs args = {DType::kBF16, 32, 48, Epilogue::kBias};
  const auto proof =
      ProductProof::Create(&runtime, args, kMostRows, 64).value();
  const auto product = EmulatedProducts().Create(proof->args()).value();
  struct Writing : Product {
    absl::Status Run(const void* x, int64_t rows, void* y,
                     const OpStream& stream) const override {
      auto* words = static_cast<uint16_t*>(stream.workspace);
      clean &= std::all_of(words, words + 32, [](uint16_t word) {
        return std::isnan(emulation::FromBf16(word));
      });
      std::fill(words, words + 32, 0);
      return product->Run(x, rows, y, stream);
    }
    const Product* product;
    mutable bool clean = true;
  } writing;
  writing.product = product.get();
  EXPECT_TRUE(proof->SetReference(writing).ok());
  EXPECT_TRUE(proof->CompareBits(writing, {3}).ok());
  EXPECT_TRUE(writing.clean);
}

INSTANTIATE_TEST_SUITE_P(Operands, ProductProofTest,
                         ::testing::Values(Operands::kElement, Operands::kE4m3),
                         [](const auto& info) {
                           return info.param == Operands::kE4m3 ? "E4m3"
                                                                : "Bf16";
                         });

}  // namespace
}  // namespace cuda
}  // namespace encoderd
