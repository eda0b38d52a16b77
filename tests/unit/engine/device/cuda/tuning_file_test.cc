// The file of chosen algorithms, and those who share it.
#include <gmock/gmock.h>

#include <thread>

#include "engine/device/cuda/products/tuning.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const TunedFor kHopper = {"NVIDIA H200", 9, 0, "cuBLASLt 130000"};

// As two replicas do that start at once on an empty folder.
TEST(TuningStoreTest, KeepsWhatTwoChooseAtOnce) {
  const TempFolder folder;
  constexpr int kKeys = 20;
  const auto key = [](int r, int i) {
    return ProductKey{Element::kBf16, i, 8 + 8 * r, Epilogue::kBias};
  };
  std::vector<std::thread> replicas;
  for (int r = 0; r < 2; ++r) {
    replicas.emplace_back([&, r] {
      TuningStore store(folder.path(), kHopper);
      for (int i = 0; i < kKeys; ++i) store.Keep({{key(r, i), "chosen"}});
      EXPECT_THAT(store.TakeNotes(), SizeIs(0));
    });
  }
  for (std::thread& replica : replicas) replica.join();
  const TuningStore next(folder.path(), kHopper);
  for (int r = 0; r < 2; ++r) {
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_NE(next.Find(key(r, i)), nullptr) << KeyText(key(r, i));
      EXPECT_EQ(*next.Find(key(r, i)), "chosen");
    }
  }
}

TEST(TuningFileTest, GivesBackWhatWasWritten) {
  const Choices choices = {
      {{Element::kFloat, 384, 1536, Epilogue::kNone}, std::string("\0\n x", 4)},
      {{Element::kHalf, 8, 16, Epilogue::kBiasGeluTanh}, "\xff"},
      {{Element::kBf16, 8, 16, Epilogue::kBiasRelu}, "b"},
      {{Element::kBf16, 8, 16, Epilogue::kBiasRelu, Operands::kE4m3}, "c"},
      {{Element::kHalf, 8, 16, Epilogue::kNone, Operands::kE4m3, 64}, "d"},
      {{Element::kBf16, 8, 16, Epilogue::kBiasGeluErf}, "e"},
      {{Element::kBf16, 8, 16, Epilogue::kBias, Operands::kElement, 64, true},
       "f"}};
  EXPECT_THAT(FormatTuning(kHopper, choices),
              AllOf(HasSubstr("\nbf16_e4m3 8 16 bias_relu 0 63\n"),
                    HasSubstr("\nbf16 8 16 bias+residual 64 66\n")));
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
      HasSubstr("encoderd tuning 3"));
  EXPECT_EQ(TuningFileName(kHopper), "nvidia-h200-9.0-cublaslt-130000.tuning");
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
