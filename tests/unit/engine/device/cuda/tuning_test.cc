// The choice of algorithms by a clock that the test turns.
#include "engine/device/cuda/tuning.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "engine/device/cuda/open_cards.h"
#include "engine/device/cuda/tuned_products.h"
#include "engine/io/file.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const TunedFor kHopper = {"NVIDIA H200", 9, 0, "cuBLASLt 130000"};
const ProductArgs kArgs = {Element::kBf16, 64, 128, Epilogue::kBias};

// What the fake library and its products share.
struct Bench {
  double now = 0;
  std::map<Algorithm, double> seconds;  // of a row; what the library has
  std::map<Algorithm, absl::Status> failing;
  absl::Status check;  // of each Check, where it fails
  int runs = 0;
  std::vector<Algorithm> created;  // to serve, in order
};

class FakeProduct : public Product {
 public:
  FakeProduct(Bench* bench, Algorithm algorithm)
      : bench_(bench), algorithm_(std::move(algorithm)) {}
  absl::Status Run(const void* x, int64_t rows, void* y,
                   Stream stream) const override {
    ++bench_->runs;
    bench_->now += static_cast<double>(rows) * bench_->seconds.at(algorithm_);
    const auto failing = bench_->failing.find(algorithm_);
    return failing == bench_->failing.end() ? absl::OkStatus()
                                            : failing->second;
  }

 private:
  Bench* const bench_;
  const Algorithm algorithm_;
};

class FakeLibrary : public AlgorithmLibrary {
 public:
  explicit FakeLibrary(Bench* bench) : bench_(bench) {}
  std::string name() const override { return "fake 1"; }
  absl::StatusOr<std::vector<Algorithm>> Candidates(
      const ProductArgs& args) override {
    std::vector<Algorithm> all;
    for (const auto& [algorithm, seconds] : bench_->seconds)
      all.push_back(algorithm);
    return all;
  }
  absl::Status Check(const ProductArgs& args,
                     const Algorithm& algorithm) override {
    if (!bench_->check.ok()) return bench_->check;
    return bench_->seconds.count(algorithm) > 0
               ? absl::OkStatus()
               : absl::InvalidArgumentError("unknown bytes");
  }
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args, const Algorithm& algorithm) override {
    bench_->created.push_back(algorithm);
    return std::unique_ptr<Product>(new FakeProduct(bench_, algorithm));
  }

 private:
  Bench* const bench_;
};

class TunedProductsTest : public ::testing::Test {
 protected:
  TunedProductsTest() { bench_.seconds = {{"a", 3}, {"b", 1}, {"c", 2}}; }

  std::unique_ptr<TunedProducts> Products(const std::string& folder,
                                          std::function<double()> clock = {}) {
    if (clock == nullptr) clock = [this] { return bench_.now; };
    return std::make_unique<TunedProducts>(
        std::make_unique<FakeLibrary>(&bench_),
        std::make_shared<TuningStore>(folder, kHopper), runtime_, 0,
        std::move(clock));
  }
  static ProductArgs OtherArgs() {
    ProductArgs other = kArgs;
    other.in = 8;
    return other;
  }
  // For root, too: no lock can be taken.
  void MakeUnwritable() const {
    const std::string lock = folder_.Path(TuningFileName(kHopper) + ".lock");
    std::filesystem::remove(lock);
    std::filesystem::create_directory(lock);
  }
  // What one start of a program serves `args` with, and its notes.
  absl::StatusOr<Algorithm> Start(const std::string& folder,
                                  const ProductArgs& args = kArgs) {
    const auto products = Products(folder);
    const auto product = products->Create(args);
    notes_ = products->TakeNotes();
    if (!product.ok()) return product.status();
    return bench_.created.back();
  }
  std::string File() const {
    return ReadWholeFile(folder_.path(), TuningFileName(kHopper), 1 << 20)
        .value();
  }

  const TempFolder folder_;
  const std::shared_ptr<EmulatedRuntime> runtime_ =
      std::make_shared<EmulatedRuntime>();
  Bench bench_;
  std::vector<std::string> notes_;
};

TEST_F(TunedProductsTest, TakesTheLibrarysFirstChoiceWhereNothingCanBeKept) {
  EXPECT_EQ(Start("").value(), "a");
  EXPECT_EQ(bench_.runs, 0);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(TunedProductsTest, KeepsTheFastestFromStartToStart) {
  EXPECT_EQ(Start(folder_.path()).value(), "b");
  EXPECT_THAT(
      notes_,
      ElementsAre(HasSubstr("bf16 64 128 bias: number 2 of 3 algorithms")));
  const int runs = bench_.runs;
  EXPECT_GT(runs, 0);
  bench_.seconds["b"] = 100;  // would be chosen no more
  EXPECT_EQ(Start(folder_.path()).value(), "b");
  EXPECT_EQ(bench_.runs, runs);
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(runtime_->allocations(), 0);
  EXPECT_EQ(runtime_->streams(), 0);
}

TEST_F(TunedProductsTest, ServesOneShapeByOneAlgorithmWhateverTimesSay) {
  const auto products = Products(folder_.path());
  ASSERT_TRUE(products->Create(kArgs).ok());
  const int runs = bench_.runs;
  bench_.seconds["a"] = 0.1;
  ASSERT_TRUE(products->Create(kArgs).ok());
  EXPECT_EQ(bench_.created.back(), "b");
  EXPECT_EQ(bench_.runs, runs);
  ProductArgs other = kArgs;
  other.epilogue = Epilogue::kNone;
  ASSERT_TRUE(products->Create(other).ok());
  EXPECT_EQ(bench_.created.back(), "a");  // a choice of its own
}

TEST_F(TunedProductsTest, TimesAnewWithAWarningWhereTheFileIsNoGood) {
  ASSERT_EQ(Start(folder_.path()).value(), "b");
  const std::string good = File();
  bench_.seconds["c"] = 0.5;
  const TunedFor ampere = {"NVIDIA A100", 8, 0, kHopper.library};
  for (const std::string& bad :
       {good.substr(0, good.size() / 2), std::string("not ours"), std::string(),
        FormatTuning(ampere, {}),
        std::string(good).replace(good.find("64 128"), 6, "72 128")}) {
    folder_.Write(TuningFileName(kHopper), bad);
    EXPECT_EQ(Start(folder_.path()).value(), "c");
    ASSERT_THAT(notes_, SizeIs(2));
    EXPECT_THAT(notes_[0],
                HasSubstr("is not used, algorithms are chosen anew"));
    EXPECT_EQ(Start(folder_.path()).value(), "c");  // the file is good again
    EXPECT_THAT(notes_, IsEmpty());
  }
}

TEST_F(TunedProductsTest, TimesAnewWhereTheLibraryRefusesWhatWasKept) {
  ASSERT_EQ(Start(folder_.path()).value(), "b");
  bench_.seconds.erase("b");
  EXPECT_EQ(Start(folder_.path()).value(), "c");
  EXPECT_THAT(notes_[0], HasSubstr("kept choice for bf16 64 128 bias is not "
                                   "used: unknown bytes"));
  EXPECT_EQ(Start(folder_.path()).value(), "c");
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(TunedProductsTest, TimesNothingAndSaysSoOnceWhereNothingCanBeWritten) {
  const auto products = Products(folder_.Path("not made/a folder"));
  ASSERT_TRUE(products->Create(kArgs).ok());
  EXPECT_EQ(bench_.created.back(), "a");
  ASSERT_TRUE(products->Create(OtherArgs()).ok());
  EXPECT_EQ(bench_.created.back(), "a");
  EXPECT_EQ(bench_.runs, 0);
  EXPECT_THAT(products->TakeNotes(),
              ElementsAre(HasSubstr("cannot be written: products that it has "
                                    "no algorithm for are not timed")));
}

TEST_F(TunedProductsTest, ServesWhatAFileHoldsThatCannotBeWritten) {
  ASSERT_EQ(Start(folder_.path()).value(), "b");
  const int runs = bench_.runs;
  MakeUnwritable();
  EXPECT_EQ(Start(folder_.path()).value(), "b");
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(Start(folder_.path(), OtherArgs()).value(), "a");
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("cannot be written")));
  EXPECT_EQ(bench_.runs, runs);
}

TEST_F(TunedProductsTest, TakesTheFirstChoiceWhereTheTimedOneCannotBeKept) {
  bool broken = false;
  const auto products = Products(folder_.path(), [&] {
    if (!broken) MakeUnwritable();
    broken = true;
    return bench_.now;
  });
  ASSERT_TRUE(products->Create(kArgs).ok());
  EXPECT_GT(bench_.runs, 0);
  EXPECT_EQ(bench_.created.back(), "a");
  const int runs = bench_.runs;
  ASSERT_TRUE(products->Create(OtherArgs()).ok());
  EXPECT_EQ(bench_.runs, runs);
}

TEST_F(TunedProductsTest, KeepsNoChoiceThatCouldNotBeTimed) {
  const auto products = Products(folder_.path());
  runtime_->Fail("Allocate", 2, 0, /*for_ever=*/true);
  ASSERT_TRUE(products->Create(kArgs).ok());
  EXPECT_EQ(bench_.created.back(), "a");
  runtime_->Fail("Allocate", 0);
  ASSERT_TRUE(products->Create(OtherArgs()).ok());
  EXPECT_EQ(ParseTuning(File(), kHopper).value(),
            (Choices{{KeyOf(OtherArgs()), "b"}}));
  ASSERT_TRUE(products->Create(kArgs).ok());
  EXPECT_EQ(bench_.created.back(), "a");  // for as long as this process lives
}

TEST_F(TunedProductsTest, EndsTheStartWhereAKeptChoiceCannotBeChecked) {
  ASSERT_EQ(Start(folder_.path()).value(), "b");
  const std::string before = File();
  bench_.check = absl::InternalError("no memory on the host");
  const absl::Status status = Start(folder_.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "cuda:0: checking the algorithm of products bf16 64 128 bias: no "
            "memory on "
            "the host");
  EXPECT_EQ(File(), before);
}

TEST_F(TunedProductsTest, TakesWhatAnotherProcessKeptMeanwhile) {
  const auto late = std::make_shared<TuningStore>(folder_.path(), kHopper);
  ASSERT_EQ(Start(folder_.path()).value(), "b");
  bench_.seconds["c"] = 0.5;
  TunedProducts products(std::make_unique<FakeLibrary>(&bench_), late, runtime_,
                         0, [this] { return bench_.now; });
  ASSERT_TRUE(products.Create(kArgs).ok());
  EXPECT_EQ(bench_.created.back(), "b");
}

TEST_F(TunedProductsTest, ReplacesWhatAnotherProcessKeptWhereItIsRefused) {
  const auto late = std::make_shared<TuningStore>(folder_.path(), kHopper);
  ASSERT_EQ(Start(folder_.path()).value(), "b");
  bench_.seconds.erase("b");
  TunedProducts products(std::make_unique<FakeLibrary>(&bench_), late, runtime_,
                         0, [this] { return bench_.now; });
  ASSERT_TRUE(products.Create(kArgs).ok());
  EXPECT_EQ(bench_.created.back(), "c");
  EXPECT_EQ(ParseTuning(File(), kHopper).value(),
            (Choices{{KeyOf(kArgs), "c"}}));
}

TEST_F(TunedProductsTest, LeavesOutACandidateThatFails) {
  bench_.failing["b"] = absl::InternalError("not supported");
  EXPECT_EQ(Start(folder_.path()).value(), "c");
}

TEST_F(TunedProductsTest, TakesTheFirstChoiceUnkeptWhereNoneCanBeTimed) {
  for (const char* call : {"AllocatePinned", "Allocate", "NewStream"}) {
    runtime_->Fail(call, 2, 0, /*for_ever=*/true);
    const bool needed = std::string(call) != "AllocatePinned";
    EXPECT_EQ(Start(folder_.Path(call)).value(), needed ? "a" : "b") << call;
    if (needed) {
      EXPECT_THAT(notes_, ElementsAre(HasSubstr("could not be timed")));
      EXPECT_EQ(Start(folder_.Path(call)).value(), "a");
      EXPECT_THAT(notes_, ElementsAre(HasSubstr("could not be timed")));
    }
    runtime_->Fail(call, 0);
  }
}

TEST_F(TunedProductsTest, EndsTheStartWhereTimingLosesTheDevice) {
  bench_.failing["b"] = absl::DataLossError("lost");
  EXPECT_EQ(Start(folder_.path()).status().code(), absl::StatusCode::kDataLoss);
  bench_.failing.clear();
  runtime_->Fail("Synchronize", 700);
  EXPECT_EQ(Start(folder_.path()).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(runtime_->allocations(), 0);
}

TEST(FastestOfTest, WeighsEveryCountOfRowsAlike) {
  EXPECT_EQ(FastestOf({{1, 8}, {2, 3}, {9, 2}}), 1);
  EXPECT_EQ(FastestOf({{2, 2}, {2, 2}}), 0);
  EXPECT_EQ(FastestOf({{}, {5, 5}}), 1);
  EXPECT_EQ(FastestOf({{}, {}}), -1);
  EXPECT_EQ(FastestOf({}), -1);
}

TEST(OpenCardsTest, KeepsAModelsChoicesInTheFolder) {
  const TempFolder folder;
  const auto runtime = std::make_shared<EmulatedRuntime>();
  const auto opened = OpenCards(
      runtime, [] { return TestLibrary(); }, {0}, "bf16", folder.path());
  ASSERT_TRUE(opened.ok()) << opened.status();
  LinearWeights weights;
  weights.weight = {16, 8, std::vector<float>(16 * 8, 0.5f)};
  weights.bias.assign(16, 0.0f);
  ASSERT_TRUE((*opened)->PrepareLinear(weights, Activation::kNone).ok());
  EXPECT_THAT((*opened)->notes(), ElementsAre(HasSubstr("bf16 8 16 bias")));
  EXPECT_TRUE(FileExists(folder.path(), "emulated-card-9.0-loops.tuning"));
}

TEST(OpenCardsTest, KeepsFp8ProductsApartOnSeveralCards) {
  const TempFolder folder;
  const auto runtime = std::make_shared<EmulatedRuntime>();
  runtime->devices = 2;
  const auto opened = OpenCards(
      runtime, [] { return TestLibrary(); }, {}, "auto", folder.path(), "fp8");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->products(), "fp8");
  LinearWeights weights;
  weights.weight = {16, 16, std::vector<float>(16 * 16, 0.5f)};
  weights.bias.assign(16, 0.0f);
  for (const bool bears : {false, true}) {
    weights.bears_8_bits = bears;
    ASSERT_TRUE((*opened)->PrepareLinear(weights, Activation::kNone).ok());
  }
  EXPECT_THAT((*opened)->notes(),
              ElementsAre(HasSubstr("products bf16 16 16 bias:"),
                          HasSubstr("products bf16_e4m3 16 16 bias:")));
}

TEST(OpenCardsTest, SaysWhyItHasNone) {
  const auto runtime = std::make_shared<EmulatedRuntime>();
  const auto library = [] { return TestLibrary(); };
  EXPECT_EQ(OpenCards(runtime, library, {1}, "auto", "").status().message(),
            "cuda:1 is not there; 1 devices are visible");
  runtime->Fail("UseDevice", 46);
  EXPECT_EQ(OpenCards(runtime, library, {0}, "auto", "").status().message(),
            "cuda:0: emulated error 46");
  runtime->devices = 0;
  EXPECT_EQ(OpenCards(runtime, library, {0}, "auto", "").status().message(),
            "no CUDA device: none is visible");
  runtime->devices = 1;
  const auto no_library =
      []() -> absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> {
    return absl::UnavailableError("cannot load it");
  };
  EXPECT_EQ(OpenCards(runtime, no_library, {0}, "auto", "").status().message(),
            "cannot load it");
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
