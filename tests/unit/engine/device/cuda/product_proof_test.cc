// What a product shows, over loops on the host: those that are right pass, each
// fault is found.
#include "engine/device/cuda/product_proof.h"

#include <gmock/gmock.h>

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
                   Stream stream) const override {
    const absl::Status status = product_.Run(x, rows, y, stream);
    change_(rows, static_cast<uint16_t*>(y));
    return status;
  }

 private:
  const Product& product_;
  const Change change_;
};

// The product's sums in the other order.
std::vector<float> SumBackwards(const std::vector<float>& x,
                                const std::vector<float>& weight, int64_t in) {
  const auto rows = static_cast<int64_t>(x.size()) / in;
  const auto out = static_cast<int64_t>(weight.size()) / in;
  std::vector<float> sums(rows * out);
  for (int64_t i = 0; i < rows * out; ++i) {
    for (int64_t k = in; k-- > 0;)
      sums[i] += x[i / out * in + k] * weight[i % out * in + k];
  }
  return sums;
}

class ProductProofTest : public ::testing::TestWithParam<Operands> {
 protected:
  void SetUp() override {
    ProductArgs args = {Element::kBf16, 32, 48, Epilogue::kBias};
    args.operands = GetParam();
    proof_ = ProductProof::Create(&runtime_, args, kMostRows).value();
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
              "other bits at 17 rows: 1 values differ in the 17 rows of 48 "
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
              HasSubstr("depend on the rows beside it at 7 rows: 1 values"));
}

// What makes the comparison of bits worth something.
TEST(WideValuesTest, GiveASumInAnotherOrderOtherBitsWithinItsBound) {
  EmulatedRuntime runtime;
  const ProductArgs sizes = {Element::kBf16, 32, 48, Epilogue::kNone};
  const auto proof = ProductProof::Create(&runtime, sizes, kMostRows).value();
  const auto product = EmulatedProducts().Create(proof->args()).value();
  const auto run = [&](const void* x, int64_t rows, void* y, Stream stream) {
    const std::vector<float> sums =
        SumBackwards(Widen(x, rows * 32, Element::kBf16),
                     Widen(proof->args().weight, 48 * 32, Element::kBf16), 32);
    std::memcpy(y, Narrow(sums, DType::kBF16).data(), 2 * sums.size());
    return absl::OkStatus();
  };
  const auto plain = [&](const void* x, int64_t rows, void* y, Stream stream) {
    return product->Run(x, rows, y, stream);
  };
  const auto backwards = proof->Values(run, kMostRows).value();
  const auto forwards = proof->Values(plain, kMostRows).value();
  int differ = 0;
  for (size_t i = 0; i < forwards.size(); ++i) {
    differ += backwards[i] != forwards[i] ? 1 : 0;
    // And by no more than the bound says.
    EXPECT_LE(std::fabs(backwards[i] - forwards[i]),
              proof->SumBound(i / 48, i % 48) +
                  2 * proof->Epsilon() * std::fabs(forwards[i]));
  }
  EXPECT_GT(differ, 0);
}

TEST_P(ProductProofTest, GivesBackWhatItTookAndNamesWhatItLacks) {
  ProductArgs args = {Element::kBf16, 32, 48, Epilogue::kBias};
  args.operands = GetParam();
  const int64_t before = runtime_.allocations();
  for (int number = 0; number < 5; ++number) {
    runtime_.Fail("Allocate", 2, number);
    const absl::Status status =
        ProductProof::Create(&runtime_, args, kMostRows).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << number;
    EXPECT_THAT(std::string(status.message()), HasSubstr("proving a product"));
    EXPECT_EQ(runtime_.allocations(), before);
  }
  EXPECT_TRUE(ProductProof::Create(&runtime_, args, kMostRows).ok());
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
