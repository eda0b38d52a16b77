// The choice of algorithms by a clock that the test turns, over a library that
// lies where it is told to.
#include "engine/device/cuda/products/tuning.h"

#include <gmock/gmock.h>

#include <limits>

#include "engine/device/cuda/products/tuned_products.h"
#include "engine/io/file.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/engine/device/cuda/fake_library.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

const TunedFor kHopper = {"NVIDIA H200", 9, 0, "cuBLASLt 130000"};
const ProductArgs kArgs = {DType::kBF16, 64, 8, Epilogue::kBias};
// With a residual to add.
const ProductArgs kAdding = [] {
  ProductArgs args = kArgs;
  args.residual = true;
  return args;
}();
constexpr int64_t kMostRows = 600;  // six buckets, the last one cut
constexpr size_t kBuckets = 6;

class TunedProductsTest : public ::testing::Test {
 protected:
  TunedProductsTest() {
    for (const auto& [name, seconds] :
         std::map<Algorithm, double>{{"a", 3}, {"b", 1}, {"c", 2}})
      bench_.algorithms[name].seconds = seconds;
    runtime_->clock = [this] { return bench_.now; };
  }

  std::unique_ptr<TunedProducts> Products(
      std::shared_ptr<TuningStore> store) const {
    return std::make_unique<TunedProducts>(
        std::make_unique<FakeLibrary>(&bench_), std::move(store), runtime_, 0,
        kMostRows);
  }
  // What one start of a program chooses, and its notes.
  absl::StatusOr<ProductChoice> Start(const std::string& folder = "",
                                      const ProductArgs& args = kArgs) {
    const auto products =
        Products(std::make_shared<TuningStore>(folder, kHopper));
    const auto product = products->Create(args);
    notes_ = products->TakeNotes();
    EXPECT_EQ(runtime_->allocations(), 0);
    EXPECT_EQ(runtime_->streams(), 0);
    EXPECT_EQ(runtime_->events(), 0);
    if (!product.ok()) return product.status();
    return *products->ChoiceOf(args);
  }
  // Of the buckets that are timed.
  static std::vector<Algorithm> Buckets(const ProductChoice& choice) {
    return {choice.by_bucket.begin(), choice.by_bucket.begin() + kBuckets};
  }
  std::string File() const {
    return ReadWholeFile(folder_.path(), TuningFileName(kHopper), 1 << 20)
        .value();
  }

  const TempFolder folder_;
  const std::shared_ptr<EmulatedRuntime> runtime_ =
      std::make_shared<EmulatedRuntime>();
  mutable FakeBench bench_;
  std::vector<std::string> notes_;
};

TEST_F(TunedProductsTest, ServesABucketByTheFastestOfTheReferencesBits) {
  const ProductChoice choice = Start().value();
  EXPECT_EQ(choice.reference, "a");
  EXPECT_THAT(Buckets(choice), Each("b"));
  EXPECT_EQ(choice.by_bucket.back(), "a");  // was not timed
  ASSERT_THAT(notes_, SizeIs(1));
  EXPECT_THAT(notes_[0], AllOf(HasSubstr("products bf16 64 8 bias: algorithm "
                                         "a serves; up to 16 rows algorithm b "
                                         "in"),
                               Not(HasSubstr("refused"))));
}

TEST_F(TunedProductsTest, ChoosesForEachBucketApart) {
  bench_.algorithms["c"].few_seconds = 0.5;
  EXPECT_THAT(Buckets(Start().value()),
              ElementsAre("c", "c", "c", "b", "b", "b"));
}

// A library's calls may take longer than its products; graphs spare them.
TEST_F(TunedProductsTest, TimesFewRowsWithoutTheCallsThatStartThem) {
  bench_.algorithms["b"].on_run = [this] { bench_.now += 1e6; };
  EXPECT_THAT(Buckets(Start().value()), Each("b"));
}

TEST_F(TunedProductsTest, TimesTheCallsTooWhereTheyCannotRunByAGraph) {
  bench_.algorithms["b"].on_run = [this] { bench_.now += 1e6; };
  // The last call first: what fails stays failed.
  for (const char* call : {"LaunchGraph", "EndCapture", "BeginCapture"}) {
    runtime_->Fail(call, 900, 0, /*forever=*/true);
    EXPECT_THAT(Buckets(Start().value()), Each("c")) << call;
    EXPECT_EQ(runtime_->graphs(), 0);
  }
}

TEST_F(TunedProductsTest, TimesTheCallsTooWhereGraphsAreNotAllowed) {
  bench_.algorithms["b"].on_run = [this] { bench_.now += 1e6; };
  const auto products = Products(std::make_shared<TuningStore>("", kHopper));
  products->AllowGraphs(false);
  ASSERT_TRUE(products->Create(kArgs).ok());
  EXPECT_THAT(Buckets(*products->ChoiceOf(kArgs)), Each("c"));
  EXPECT_EQ(runtime_->captures(), 0);
}

// The last bucket that is timed holds more rows than were compared.
TEST_F(TunedProductsTest, ServesMoreRowsThanWereProvedByTheReference) {
  const auto products = Products(std::make_shared<TuningStore>("", kHopper));
  const auto product = products->Create(kAdding).value();
  ASSERT_EQ(products->ChoiceOf(kAdding)->by_bucket[kBuckets - 1], "b");
  std::string served;
  for (auto& [name, algorithm] : bench_.algorithms)
    algorithm.on_run = [&served, name = name] { served += name; };
  const std::vector<uint16_t> x(2048 * kArgs.in);
  std::vector<uint16_t> y(2048 * kArgs.out);
  for (const int64_t rows : {kMostRows - 1, kMostRows, kMostRows + 1,
                             kBucketRows[kBuckets - 1], int64_t{2048}}) {
    const std::string want = rows <= kMostRows ? "b" : "a";
    served.clear();
    ASSERT_TRUE(product->Run(x.data(), rows, y.data(), nullptr).ok());
    EXPECT_EQ(served, want) << rows;
    served.clear();
    ASSERT_TRUE(
        product->RunAdding(x.data(), rows, y.data(), y.data(), nullptr).ok());
    EXPECT_EQ(served, want) << rows;
  }
}

TEST_F(TunedProductsTest, KeepsTheReferenceWhereTheGainIsWithinTheNoise) {
  bench_.algorithms["b"].seconds = 2.97;
  bench_.algorithms["c"].seconds = 3.1;
  EXPECT_THAT(Buckets(Start().value()), Each("a"));
}

TEST_F(TunedProductsTest, ServesNoneThatGivesOtherBitsAndSaysHowMany) {
  bench_.algorithms["b"].lies_from = 200;  // in the fourth bucket and above
  EXPECT_THAT(Buckets(Start().value()),
              ElementsAre("b", "b", "b", "c", "c", "c"));
  EXPECT_THAT(notes_,
              ElementsAre(HasSubstr(
                  "3 times an algorithm was rejected, the first: algorithm b: "
                  "other bits at 256 rows: 2 values differ in the 512 rows of "
                  "8 compared")));
}

TEST_F(TunedProductsTest, TakesTheFirstReferenceWhoseRowsKeepTheirBits) {
  bench_.algorithms["a"].lies_from = 500;
  const ProductChoice choice = Start().value();
  EXPECT_EQ(choice.reference, "b");
  EXPECT_THAT(notes_,
              ElementsAre(HasSubstr("the first: algorithm a: a row's bits "
                                    "depend on the other rows at ")));
}

TEST_F(TunedProductsTest, TakesTheFirstReferenceThatServesEveryCountOfRows) {
  bench_.algorithms["a"].refuses_rows = 7;
  EXPECT_EQ(Start().value().reference, "b");
  bench_.algorithms["b"].refuses_rows = 1;
  EXPECT_EQ(Start().value().reference, "c");
  bench_.algorithms["c"].refuses_rows = 8192;
  const absl::Status none = Start().status();
  EXPECT_EQ(none.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("no algorithm for products bf16 64 8 bias (3 tried): "
                        "not at this count of rows"));
}

TEST_F(TunedProductsTest, LeavesTheResidualToTheNormWhereItsSumIsWrong) {
  bench_.algorithms["a"].lies_adding = true;
  const ProductChoice choice = Start("", kAdding).value();
  EXPECT_FALSE(choice.adds_residual);
  EXPECT_THAT(notes_,
              Contains(HasSubstr("with a residual added it is off by")));
  EXPECT_THAT(Buckets(choice), Each("b"));
}

TEST_F(TunedProductsTest, ServesNoBucketByOneThatAddsTheResidualOtherwise) {
  bench_.algorithms["b"].lies_adding = true;
  const ProductChoice choice = Start("", kAdding).value();
  EXPECT_TRUE(choice.adds_residual);
  EXPECT_THAT(Buckets(choice), Each("c"));
}

TEST_F(TunedProductsTest, ProvesNoResidualWhereNoneIsAdded) {
  for (auto& [name, algorithm] : bench_.algorithms)
    algorithm.lies_adding = true;
  const ProductChoice choice = Start().value();
  EXPECT_FALSE(choice.adds_residual);
  EXPECT_THAT(Buckets(choice), Each("b"));
  EXPECT_THAT(notes_, ElementsAre(Not(HasSubstr("residual"))));
}

TEST_F(TunedProductsTest, KeepsChoicesWithAResidualApart) {
  bench_.algorithms["b"].lies_adding = true;
  ASSERT_TRUE(Start(folder_.path()).ok());
  EXPECT_THAT(Buckets(Start(folder_.path(), kAdding).value()), Each("c"));
  EXPECT_THAT(notes_, Each(Not(HasSubstr("the stored choice"))));
  EXPECT_THAT(Buckets(Start(folder_.path()).value()), Each("b"));
}

TEST_F(TunedProductsTest, ChoosesOnceForAllLayers) {
  const auto products = Products(std::make_shared<TuningStore>("", kHopper));
  ASSERT_TRUE(products->Create(kArgs).ok());
  const int runs = bench_.runs;
  bench_.algorithms["a"].seconds = 0.1;
  ASSERT_TRUE(products->Create(kArgs).ok());
  EXPECT_EQ(bench_.runs, runs);
  ProductArgs other = kArgs;
  other.epilogue = Epilogue::kNone;
  ASSERT_TRUE(products->Create(other).ok());
  EXPECT_EQ(products->ChoiceOf(other)->by_bucket.front(), "a");
}

TEST_F(TunedProductsTest, KeepsTheFastestFromStartToStart) {
  ASSERT_TRUE(Start(folder_.path()).ok());
  bench_.algorithms["b"].seconds = 100;  // would be chosen no more
  EXPECT_THAT(Buckets(Start(folder_.path()).value()), Each("b"));
}

TEST_F(TunedProductsTest, ProvesWhatItKeptButDoesNotTimeIt) {
  int readings = 0;
  runtime_->clock = [&] {
    ++readings;
    return bench_.now;
  };
  ASSERT_TRUE(Start(folder_.path()).ok());
  EXPECT_GT(readings, 0);
  readings = 0;
  bench_.created.clear();
  ASSERT_TRUE(Start(folder_.path()).ok());
  EXPECT_EQ(readings, 0);
  EXPECT_THAT(bench_.created, Contains("b"));
}

TEST_F(TunedProductsTest, NamesTheFileWhoseAlgorithmLosesTheDevice) {
  ASSERT_TRUE(Start(folder_.path()).ok());
  bench_.algorithms["b"].on_run = [this] {
    runtime_->Fail("Synchronize", 700);
  };
  const absl::Status status = Start(folder_.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(StartsWith(folder_.Path(TuningFileName(kHopper)) +
                       ": cuda:0: the algorithm stored for products bf16 64 8 "
                       "bias 16 fails: "),
            EndsWith("; delete the file and restart")));
}

TEST_F(TunedProductsTest, ServesNothingOfTheFileThatGivesOtherBits) {
  ASSERT_TRUE(Start(folder_.path()).ok());
  bench_.algorithms["b"].lies_from = 1;
  EXPECT_THAT(Buckets(Start(folder_.path()).value()), Each("c"));
  EXPECT_THAT(notes_[0],
              HasSubstr("the stored choice for up to 16 rows does not "
                        "serve: other bits"));
  EXPECT_THAT(Buckets(Start(folder_.path()).value()), Each("c"));
  EXPECT_THAT(notes_, Each(Not(HasSubstr("the stored choice"))));
}

TEST_F(TunedProductsTest, TimesAgainWithAWarningWhereTheFileIsNoGood) {
  ASSERT_TRUE(Start(folder_.path()).ok());
  const std::string good = File();
  bench_.algorithms["c"].seconds = 0.5;
  const TunedFor ampere = {"NVIDIA A100", 8, 0, kHopper.library};
  for (const std::string& bad :
       {good.substr(0, good.size() / 2), std::string("not ours"), std::string(),
        FormatTuning(ampere, {}),
        std::string(good).replace(good.find("64 8"), 4, "72 8")}) {
    folder_.Write(TuningFileName(kHopper), bad);
    EXPECT_THAT(Buckets(Start(folder_.path()).value()), Each("c"));
    EXPECT_THAT(notes_[0],
                HasSubstr("is not used, so algorithms are timed again"));
    EXPECT_THAT(Buckets(Start(folder_.path()).value()), Each("c"));
    EXPECT_THAT(notes_, SizeIs(1));  // the file is good again
  }
}

TEST_F(TunedProductsTest, TimesAndSaysSoOnceWhereNothingCanBeWritten) {
  const auto products = Products(std::make_shared<TuningStore>(
      folder_.Path("not made/a folder"), kHopper));
  ProductArgs other = kArgs;
  other.in = 8;
  ASSERT_TRUE(products->Create(kArgs).ok());
  ASSERT_TRUE(products->Create(other).ok());
  EXPECT_EQ(products->ChoiceOf(other)->by_bucket.front(), "b");
  int warnings = 0;
  for (const std::string& note : products->TakeNotes())
    warnings += note.find("cannot be written") != note.npos ? 1 : 0;
  EXPECT_EQ(warnings, 1);
}

TEST_F(TunedProductsTest, EndsTheStartWhereThereIsNoMemoryToProve) {
  for (const char* call : {"Allocate", "AllocatePinned"}) {
    runtime_->Fail(call, 2);
    const absl::Status status = Start(folder_.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << call;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("cuda:0: products bf16 64 8 bias: no "));
    EXPECT_FALSE(FileExists(folder_.path(), TuningFileName(kHopper)).value());
  }
}

TEST_F(TunedProductsTest, LeavesOutACandidateThatFails) {
  bench_.algorithms["b"].run = absl::InternalError("not supported");
  EXPECT_THAT(Buckets(Start().value()), Each("c"));
}

TEST_F(TunedProductsTest, EndsTheStartWhereAnAlgorithmCannotBeChecked) {
  bench_.check = absl::InternalError("no memory on the host");
  const absl::Status status = Start().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "cuda:0: checking the algorithm of products bf16 64 8 bias: no "
            "memory on the host");
}

TEST_F(TunedProductsTest, LeavesOutACandidateThatIsSaidToLoseTheDevice) {
  // The wait after it says that the device is fine.
  bench_.algorithms["b"].run = absl::DataLossError("execution failed");
  EXPECT_THAT(Buckets(Start().value()), Each("c"));
}

TEST_F(TunedProductsTest, EndsTheStartWhereTheDeviceIsLostOnTheWay) {
  for (const int number : {0, 5, 20, 60, 500}) {
    runtime_->Fail("Synchronize", 700, number);
    EXPECT_EQ(Start().status().code(), absl::StatusCode::kDataLoss) << number;
    runtime_->Fail("Synchronize", 0);
  }
}

TEST_F(TunedProductsTest, GivesTheFirstCardsBitsOnAnother) {
  const auto store = std::make_shared<TuningStore>("", kHopper);
  ASSERT_TRUE(Products(store)->Create(kArgs).ok());
  const auto second = Products(store);
  bench_.algorithms["A"].seconds = 9;  // now the library's first answer
  ASSERT_TRUE(second->Create(kArgs).ok());
  EXPECT_EQ(second->ChoiceOf(kArgs)->reference, "a");
  bench_.algorithms.erase("a");
  const absl::Status status = Products(store)->Create(kArgs).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rejects the algorithm that products bf16 64 8 bias "
                        "have on another card of this process: unknown bytes"));
}

TEST(BucketsTest, CoverEveryCountOfRowsOnce) {
  EXPECT_EQ(BucketOf(1), 0U);
  for (size_t bucket = 0; bucket < kBucketRows.size(); ++bucket) {
    EXPECT_EQ(BucketOf(kBucketRows[bucket]), bucket);
    EXPECT_EQ(BucketOf(FewestRows(bucket)), bucket);
    EXPECT_LT(FewestRows(bucket), kBucketRows[bucket]);
  }
  EXPECT_EQ(BucketOf(kBucketRows.back() + 1), kBucketRows.size());
}

TEST(FullBatchTest, GivesEveryMultiprocessorTheSameNumberOfTiles) {
  for (int32_t processors = 1; processors <= 192; ++processors) {
    const int64_t rows = FullBatchRows(processors);
    EXPECT_GE(rows, 8192) << processors;
    EXPECT_LE(rows, kBucketRows.back()) << processors;
    EXPECT_EQ(rows % (128 * processors), 0) << processors;
    EXPECT_LT(rows - 128 * processors, 8192) << processors;  // the least
  }
  EXPECT_EQ(FullBatchRows(132), 16896);
}

TEST(FullBatchTest, IsWhatTheLastBucketHoldsOnCardsThatAreLargerOrUnknown) {
  EXPECT_EQ(FullBatchRows(193), kBucketRows.back());
  EXPECT_EQ(FullBatchRows(std::numeric_limits<int32_t>::max()),
            kBucketRows.back());
  EXPECT_EQ(FullBatchRows(0), 8192);
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
