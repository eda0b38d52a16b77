// The exact GELU in a product's epilogue: served where it proves itself next to
// the plain way.
#include "engine/device/cuda/products/gelu_products.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "engine/device/cuda/host/open_cards.h"
#include "engine/device/cuda/host/weights.h"
#include "engine/device/cuda/products/tuned_products.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// The loops with the exact GELU, wrong where a test wants it.
class WrongGeluLibrary : public EmulatedGeluLibrary {
 public:
  using Change = std::function<void(int64_t rows, uint16_t* y)>;
  explicit WrongGeluLibrary(Change change) : change_(std::move(change)) {}
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args, const Algorithm& algorithm) override {
    auto product = EmulatedGeluLibrary::Create(args, algorithm);
    if (!product.ok()) return product.status();
    return std::unique_ptr<Product>(new Changed(*std::move(product), change_));
  }

 private:
  class Changed : public Product {
   public:
    Changed(std::unique_ptr<Product> product, Change change)
        : product_(std::move(product)), change_(std::move(change)) {}
    absl::Status Run(const void* x, int64_t rows, void* y,
                     const OpStream& stream) const override {
      const absl::Status status = product_->Run(x, rows, y, stream);
      change_(rows, static_cast<uint16_t*>(y));
      return status;
    }

   private:
    const std::unique_ptr<Product> product_;
    const Change change_;
  };
  const Change change_;
};

class GeluProductsTest : public ::testing::TestWithParam<DType> {
 protected:
  // The notes of a card that has prepared one layer's product, and whether it
  // applies GELU in the epilogue.
  std::pair<bool, std::vector<std::string>> Serve(
      const std::function<std::unique_ptr<AlgorithmLibrary>()>& fused,
      int64_t in = 32) {
    CardLibraries libraries;
    libraries.plain = [] { return std::make_unique<EmulatedLibrary>(); };
    libraries.fused = [&](const Card&) { return fused(); };
    CardOptions options;
    options.dtype = DTypeName(GetParam());
    options.most_tuned_rows = 32;
    options.prove_paths = false;
    const auto device = OpenCards(runtime_, libraries, {0}, options).value();
    LinearWeights weights;
    weights.weight = {48, in, std::vector<float>(48 * in, 0.5f)};
    weights.bias.assign(48, 0.25f);
    const auto linear =
        device->PrepareLinear(weights, Activation::kGeluErf).value();
    return {
        static_cast<const CudaLinear&>(*linear).activation == Activation::kNone,
        device->notes()};
  }

  const std::shared_ptr<EmulatedRuntime> runtime_ =
      std::make_shared<EmulatedRuntime>();
};

TEST_P(GeluProductsTest, ServesWhatLiesWithinItsBound) {
  const auto [fused, notes] =
      Serve([] { return std::make_unique<EmulatedGeluLibrary>(); });
  EXPECT_TRUE(fused);
  EXPECT_THAT(notes, Contains(HasSubstr("gelu loops serves: the fused epilogue "
                                        "differs by 0.")));
  EXPECT_EQ(runtime_->allocations(), 0);
}

TEST_P(GeluProductsTest, ServesThePlainWayWhereOneValueIsOff) {
  const auto [fused, notes] = Serve([] {
    return std::make_unique<WrongGeluLibrary>([](int64_t rows, uint16_t* y) {
      for (int64_t r = 0; r < rows; ++r) y[r * 48 + 3] = 0x4300;
    });
  });
  EXPECT_FALSE(fused);
  EXPECT_THAT(notes, Contains(HasSubstr("loops and bias_gelu serve: the fused "
                                        "epilogue differs by ")));
}

TEST_P(GeluProductsTest, ServesThePlainWayWhereAValueIsNoNumber) {
  const auto [fused, notes] = Serve([] {
    return std::make_unique<WrongGeluLibrary>([](int64_t rows, uint16_t* y) {
      for (int64_t r = 0; r < rows; ++r) y[r * 48 + 3] = 0xffff;
    });
  });
  EXPECT_FALSE(fused);
  EXPECT_THAT(notes, Contains(HasSubstr("differs by inf of its bound")));
}

TEST_P(GeluProductsTest, ServesThePlainWayWhereRowsDependOnTheirCount) {
  const auto [fused, notes] = Serve([] {
    return std::make_unique<WrongGeluLibrary>([](int64_t rows, uint16_t* y) {
      if (rows == 17) y[3] ^= 1;
    });
  });
  EXPECT_FALSE(fused);
  EXPECT_THAT(notes, Contains(HasSubstr("a row's bits depend on the other "
                                        "rows at 17 rows")));
}

// Another function of the sum and its bias than GELU.
class OtherFunctionLibrary : public EmulatedGeluLibrary {
 public:
  using Function = std::function<float(float sum, float bias)>;
  OtherFunctionLibrary(DType dtype, Function function)
      : dtype_(dtype), function_(std::move(function)) {}
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args, const Algorithm& algorithm) override {
    auto made = std::make_unique<Other>();
    ProductArgs plain = args;
    plain.epilogue = Epilogue::kNone;
    made->plain = EmulatedProducts().Create(plain).value();
    made->args = args;
    made->dtype = dtype_;
    made->function = function_;
    return std::unique_ptr<Product>(std::move(made));
  }

 private:
  struct Other : Product {
    absl::Status Run(const void* x, int64_t rows, void* y,
                     const OpStream& stream) const override {
      const absl::Status status = plain->Run(x, rows, y, stream);
      std::vector<float> sums = Widen(y, rows * args.out, args.element);
      for (int64_t i = 0; i < rows * args.out; ++i) {
        sums[i] = function(sums[i],
                           static_cast<const float*>(args.bias)[i % args.out]);
      }
      const std::vector<char> bytes = Narrow(sums, dtype);
      std::memcpy(y, bytes.data(), bytes.size());
      return status;
    }
    std::unique_ptr<Product> plain;
    ProductArgs args;
    DType dtype;
    OtherFunctionLibrary::Function function;
  };
  const DType dtype_;
  const Function function_;
};

TEST_P(GeluProductsTest, TellsGeluFromOtherFunctionsAtAModelsWidth) {
  const auto serves = [&](const OtherFunctionLibrary::Function& function) {
    return Serve(
               [&] {
                 return std::make_unique<OtherFunctionLibrary>(GetParam(),
                                                               function);
               },
               1024)
        .first;
  };
  const auto gelu = [](float x) {
    return 0.5f * x * (1.0f + std::erf(x * 0.70710678f));
  };
  EXPECT_TRUE(serves([&](float sum, float bias) { return gelu(sum + bias); }));
  EXPECT_FALSE(serves([&](float sum, float bias) { return gelu(sum); }));
  EXPECT_FALSE(serves(
      [](float sum, float bias) { return std::fmax(sum + bias, 0.0f); }));
  EXPECT_FALSE(serves([](float sum, float bias) { return sum + bias; }));
}

TEST_P(GeluProductsTest, RefusesASecondCardThatFindsOtherwise) {
  CardLibraries libraries;
  libraries.plain = [] { return std::make_unique<EmulatedLibrary>(); };
  int cards = 0;
  libraries.fused =
      [&](const Card&) -> absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> {
    if (cards++ == 0) return std::make_unique<EmulatedGeluLibrary>();
    return std::make_unique<WrongGeluLibrary>([](int64_t rows, uint16_t* y) {
      for (int64_t r = 0; r < rows; ++r) y[r * 16 + 3] = 0x4300;
    });
  };
  CardOptions options;
  options.dtype = DTypeName(GetParam());
  options.most_tuned_rows = 16;
  runtime_->devices = 2;
  const auto device = OpenCards(runtime_, libraries, {}, options).value();
  LinearWeights weights;
  weights.weight = {16, 32, std::vector<float>(16 * 32, 0.5f)};
  weights.bias.assign(16, 0.25f);
  const absl::Status status =
      device->PrepareLinear(weights, Activation::kGeluErf).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("fails on this GPU but not on cuda:0"));
}

INSTANTIATE_TEST_SUITE_P(DTypes, GeluProductsTest,
                         ::testing::Values(DType::kBF16, DType::kF16),
                         [](const auto& info) {
                           return std::string(DTypeName(info.param));
                         });

TEST(GeluProductsFloatTest, AppliesTheExactGeluApartInFloat) {
  CardLibraries libraries;
  libraries.plain = [] { return std::make_unique<EmulatedLibrary>(); };
  libraries.fused = [](const Card&) {
    return std::make_unique<EmulatedGeluLibrary>();
  };
  CardOptions options;
  options.dtype = "fp32";
  options.most_tuned_rows = 16;
  const auto device =
      OpenCards(std::make_shared<EmulatedRuntime>(), libraries, {0}, options)
          .value();
  LinearWeights weights;
  weights.weight = {16, 8, std::vector<float>(16 * 8, 0.5f)};
  weights.bias.assign(16, 0.25f);
  const auto linear =
      device->PrepareLinear(weights, Activation::kGeluErf).value();
  EXPECT_EQ(static_cast<const CudaLinear&>(*linear).activation,
            Activation::kGeluErf);
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
