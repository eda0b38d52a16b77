// Opening cards over a runtime and a library of the tests' own: what is kept,
// what is noted, what is refused.
#include "engine/device/cuda/host/open_cards.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "engine/io/file.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/engine/device/cuda/fake_library.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rows as the emulation has them; few, since loops compute them.
CardOptions Few(const std::string& folder, const std::string& dtype = "bf16",
                const std::string& operands = "dtype") {
  CardOptions options;
  options.dtype = dtype;
  options.operands = operands;
  options.tuning_folder = folder;
  options.prove_paths = false;
  options.most_tuned_rows = 32;
  return options;
}

CardLibraries Libraries() {
  CardLibraries libraries;
  libraries.plain = [] { return TestLibrary(); };
  return libraries;
}

TEST(OpenCardsTest, KeepsAModelsChoicesInTheFolder) {
  const TempFolder folder;
  const auto runtime = std::make_shared<EmulatedRuntime>();
  const auto opened = OpenCards(runtime, Libraries(), {0}, Few(folder.path()));
  ASSERT_TRUE(opened.ok()) << opened.status();
  LinearWeights weights;
  weights.weight = {16, 8, std::vector<float>(16 * 8, 0.5f)};
  weights.bias.assign(16, 0.0f);
  ASSERT_TRUE((*opened)->PrepareLinear(weights, Activation::kNone).ok());
  EXPECT_THAT((*opened)->notes(), ElementsAre(HasSubstr("bf16 8 16 bias")));
  EXPECT_TRUE(
      FileExists(folder.path(), "emulated-card-9.0-loops.tuning").value());
}

TEST(OpenCardsTest, KeepsFp8ProductsApartOnSeveralCards) {
  const TempFolder folder;
  const auto runtime = std::make_shared<EmulatedRuntime>();
  runtime->devices = 2;
  const auto opened =
      OpenCards(runtime, Libraries(), {}, Few(folder.path(), "auto", "fp8"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->products(), "fp8");
  LinearWeights weights;
  weights.weight = {16, 16, std::vector<float>(16 * 16, 0.5f)};
  weights.bias.assign(16, 0.0f);
  for (const bool bears : {false, true}) {
    weights.allow_fp8 = bears;
    ASSERT_TRUE((*opened)->PrepareLinear(weights, Activation::kNone).ok());
  }
  EXPECT_THAT((*opened)->notes(),
              ElementsAre(HasSubstr("products bf16 16 16 bias:"),
                          HasSubstr("products bf16 16 16 bias:"),
                          HasSubstr("products bf16_e4m3 16 16 bias:"),
                          HasSubstr("products bf16_e4m3 16 16 bias:")));
}

TEST(OpenCardsTest, TunesUpToTheBatchThatFillsTheCardAndNoFurther) {
  FakeBench bench;
  bench.algorithms["a"].seconds = 1;
  CardLibraries libraries;
  libraries.plain = [&] { return std::make_unique<FakeLibrary>(&bench); };
  const auto runtime = std::make_shared<EmulatedRuntime>();
  runtime->card.multiprocessors = 132;
  CardOptions options = Few("");
  options.most_tuned_rows = CardOptions().most_tuned_rows;
  const auto opened = OpenCards(runtime, libraries, {0}, options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->default_batch_tokens(), 16896);
  LinearWeights weights;
  weights.weight = {16, 8, std::vector<float>(16 * 8, 0.5f)};
  weights.bias.assign(16, 0.0f);
  ASSERT_TRUE((*opened)->PrepareLinear(weights, Activation::kNone).ok());
  EXPECT_EQ(*std::max_element(bench.asked.begin(), bench.asked.end()), 16896);
}

TEST(OpenCardsTest, SaysWhyItHasNone) {
  const auto runtime = std::make_shared<EmulatedRuntime>();
  CardLibraries libraries = Libraries();
  const auto refusal = [&](int32_t ordinal) {
    return std::string(
        OpenCards(runtime, libraries, {ordinal}, Few("")).status().message());
  };
  EXPECT_EQ(refusal(1), "cuda:1 does not exist; 1 devices are visible");
  runtime->Fail("UseDevice", 46);
  EXPECT_EQ(refusal(0), "cuda:0: emulated error 46");
  runtime->devices = 0;
  EXPECT_EQ(refusal(0), "no CUDA device: none is visible");
  runtime->devices = 1;
  libraries.plain = []() -> absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> {
    return absl::UnavailableError("cannot load it");
  };
  EXPECT_EQ(refusal(0), "cannot load it");
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
