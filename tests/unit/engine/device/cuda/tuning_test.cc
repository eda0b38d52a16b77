// The choice of algorithms by a clock that the test turns, and its file.
#include "engine/device/cuda/tuning.h"

#include <gmock/gmock.h>

#include "engine/device/cuda/open_cards.h"
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

  // What one start of a program serves `args` with, and its notes.
  absl::StatusOr<Algorithm> Start(const std::string& folder,
                                  const ProductArgs& args = kArgs) {
    TunedProducts products(std::make_unique<FakeLibrary>(&bench_),
                           std::make_shared<TuningStore>(folder, kHopper),
                           runtime_, 0, [this] { return bench_.now; });
    const auto product = products.Create(args);
    notes_ = products.TakeNotes();
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
  TunedProducts products(std::make_unique<FakeLibrary>(&bench_),
                         std::make_shared<TuningStore>(folder_.path(), kHopper),
                         runtime_, 0, [this] { return bench_.now; });
  ASSERT_TRUE(products.Create(kArgs).ok());
  const int runs = bench_.runs;
  bench_.seconds["a"] = 0.1;
  ASSERT_TRUE(products.Create(kArgs).ok());
  EXPECT_EQ(bench_.created.back(), "b");
  EXPECT_EQ(bench_.runs, runs);
  ProductArgs other = kArgs;
  other.epilogue = Epilogue::kNone;
  ASSERT_TRUE(products.Create(other).ok());
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
    EXPECT_THAT(notes_[0], HasSubstr("is not used, products are timed anew"));
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

TEST_F(TunedProductsTest, WarnsOnceWhereTheFolderCannotBeWritten) {
  folder_.Write("file", "not a folder");
  TunedProducts products(
      std::make_unique<FakeLibrary>(&bench_),
      std::make_shared<TuningStore>(folder_.Path("file"), kHopper), runtime_, 0,
      [this] { return bench_.now; });
  ASSERT_TRUE(products.Create(kArgs).ok());
  EXPECT_EQ(bench_.created.back(), "b");
  ProductArgs other = kArgs;
  other.in = 8;
  ASSERT_TRUE(products.Create(other).ok());
  int warnings = 0;
  for (const std::string& note : products.TakeNotes())
    warnings += note.find("is not kept") != note.npos ? 1 : 0;
  EXPECT_EQ(warnings, 1);
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
      EXPECT_FALSE(FileExists(folder_.path(), call));
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

TEST(TuningFileTest, GivesBackWhatWasWritten) {
  const Choices choices = {
      {{Element::kFloat, 384, 1536, Epilogue::kNone}, std::string("\0\n x", 4)},
      {{Element::kHalf, 8, 16, Epilogue::kBiasGeluTanh}, "\xff"},
      {{Element::kBf16, 8, 16, Epilogue::kBiasRelu}, "b"}};
  EXPECT_EQ(ParseTuning(FormatTuning(kHopper, choices), kHopper).value(),
            choices);
}

TEST(TuningFileTest, RefusesEveryDamageOfOneByte) {
  const std::string good = FormatTuning(
      kHopper, {{{Element::kBf16, 8, 16, Epilogue::kBias}, "algorithm"}});
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(ParseTuning(bad, kHopper).ok()) << i;
    EXPECT_FALSE(ParseTuning(good.substr(0, i), kHopper).ok()) << i;
  }
}

TEST(TuningFileTest, RefusesAnotherCardLibraryAndFormat) {
  const std::string text = FormatTuning(kHopper, {});
  for (const TunedFor& other :
       {TunedFor{"NVIDIA H100", 9, 0, kHopper.library},
        TunedFor{kHopper.card, 10, 0, kHopper.library},
        TunedFor{kHopper.card, 9, 0, "cuBLASLt 120000"}}) {
    EXPECT_THAT(std::string(ParseTuning(text, other).status().message()),
                HasSubstr("it is not of " + other.card));
    EXPECT_NE(TuningFileName(other), TuningFileName(kHopper));
  }
  EXPECT_THAT(
      std::string(
          ParseTuning("encoderd tuning 2\n", kHopper).status().message()),
      HasSubstr("encoderd tuning 1"));
  EXPECT_EQ(TuningFileName(kHopper), "nvidia-h200-9.0-cublaslt-130000.tuning");
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
