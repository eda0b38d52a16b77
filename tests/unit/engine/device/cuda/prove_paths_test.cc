// What serves after a start: every fast path that proves itself, the plain one
// for each that does not.
#include "engine/device/cuda/host/prove_paths.h"

#include <gmock/gmock.h>

#include <utility>

#include "engine/device/cuda/host/open_cards.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kFastPaths =
    kAllAttentionPaths & ~PathBit(AttentionPath::kGeneral);

ModelSizes Sizes() {
  ModelSizes sizes;
  sizes.hidden_size = 32;
  sizes.num_attention_heads = 2;
  return sizes;
}

class ProvePathsTest : public ::testing::Test {
 protected:
  absl::Status Prove(DType element, Operands operands,
                     const AttentionStart& attention = kStartAttention,
                     NormStart norm = &Start) {
    notes_.clear();
    const absl::Status status = ProvePaths(&runtime_, sizes_, element, operands,
                                           &paths_, &notes_, attention, norm);
    EXPECT_EQ(runtime_.allocations(), 0);
    EXPECT_EQ(runtime_.streams(), 0);
    return status;
  }

  EmulatedRuntime runtime_;
  ModelSizes sizes_ = Sizes();
  FastPaths paths_;
  std::vector<std::string> notes_;
};

TEST_F(ProvePathsTest, LetsEveryPathServeThatIsWithinItsBound) {
  for (const DType element : {DType::kBF16, DType::kF16}) {
    ASSERT_TRUE(Prove(element, Operands::kE4m3).ok());
    EXPECT_EQ(paths_.attention_paths, kFastPaths);
    EXPECT_TRUE(paths_.fused_e4m3);
    EXPECT_THAT(
        notes_,
        ElementsAre(AllOf(HasSubstr("proved at start: attention "),
                          HasSubstr("of the bound; add_layer_norm in e4m3"))));
  }
}

TEST_F(ProvePathsTest, HasNothingToProveInFloat) {
  ASSERT_TRUE(Prove(DType::kF32, Operands::kElement).ok());
  EXPECT_EQ(paths_.attention_paths, 0U);
  EXPECT_FALSE(paths_.fused_e4m3);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(ProvePathsTest, LeavesToTheGeneralKernelAPathThatIsWrong) {
  const AttentionStart wrong = [](const AttentionOp& op,
                                  const OpStream& stream) {
    const int code = Start(op, stream);
    if (op.path == AttentionPath::kWhole64)
      static_cast<uint16_t*>(op.context.data)[0] = 0x4700;
    return code;
  };
  ASSERT_TRUE(Prove(DType::kBF16, Operands::kElement, wrong).ok());
  EXPECT_EQ(paths_.attention_paths,
            kFastPaths & ~PathBit(AttentionPath::kWhole64));
  EXPECT_THAT(notes_, Contains(HasSubstr("whole64 does not serve, the general "
                                         "one does: ")));
}

// The kernels of a limited reach are others than those that see every key.
TEST_F(ProvePathsTest, ProvesEachReachOfTheModelsLayers) {
  const AttentionStart wrong = [](AttentionOp op, const OpStream& stream) {
    if (op.path == AttentionPath::kWarp && op.reach == Reach{5, 5})
      op.reach.left = 4;
    return Start(op, stream);
  };
  sizes_.reaches = {{-1, 0}, {5, 5}};
  ASSERT_TRUE(Prove(DType::kBF16, Operands::kElement).ok());
  EXPECT_EQ(paths_.attention_paths, kFastPaths);
  ASSERT_TRUE(Prove(DType::kBF16, Operands::kElement, wrong).ok());
  EXPECT_EQ(paths_.attention_paths,
            kFastPaths & ~PathBit(AttentionPath::kWarp));
  EXPECT_THAT(notes_, Contains(HasSubstr("reach 5 and 5")));
}

TEST_F(ProvePathsTest, ProvesAReachThatManyLayersHaveOnce) {
  int starts = 0;
  const AttentionStart counts = [&](const AttentionOp& op,
                                    const OpStream& stream) {
    ++starts;
    return Start(op, stream);
  };
  sizes_.reaches = {{5, 5}};
  ASSERT_TRUE(Prove(DType::kBF16, Operands::kElement, counts).ok());
  EXPECT_THAT(paths_.reaches, ElementsAre(Reach(), Reach{5, 5}));
  const int once = std::exchange(starts, 0);
  sizes_.reaches = {{5, 5}, {}, {5, 5}, {5, 5}};
  ASSERT_TRUE(Prove(DType::kBF16, Operands::kElement, counts).ok());
  EXPECT_THAT(paths_.reaches, ElementsAre(Reach(), Reach{5, 5}));
  EXPECT_EQ(starts, once);
}

TEST_F(ProvePathsTest, LeavesToQuantizeRowsANormWhoseCodesAreWrong) {
  const NormStart wrong = [](const AddNormOp& op, const OpStream& stream) {
    const int code = Start(op, stream);
    if (op.quantized != nullptr) static_cast<char*>(op.quantized)[1] ^= 1;
    return code;
  };
  ASSERT_TRUE(
      Prove(DType::kBF16, Operands::kE4m3, kStartAttention, wrong).ok());
  EXPECT_FALSE(paths_.fused_e4m3);
  EXPECT_THAT(notes_, Contains(HasSubstr("e4m3 does not serve, quantize_rows "
                                         "does: ")));
}

TEST_F(ProvePathsTest, ServesThePlainPathsWhereMemoryIsShort) {
  for (const char* call : {"NewStream", "Allocate", "AllocatePinned"}) {
    runtime_.Fail(call, 2, 0, /*forever=*/true);
    ASSERT_TRUE(Prove(DType::kBF16, Operands::kE4m3).ok()) << call;
    EXPECT_EQ(paths_.attention_paths, 0U) << call;
    EXPECT_FALSE(notes_.empty());
    runtime_.Fail(call, 0);
  }
}

TEST_F(ProvePathsTest, EndsTheStartWhereTheDeviceIsLost) {
  runtime_.Fail("Synchronize", 700);
  EXPECT_EQ(Prove(DType::kBF16, Operands::kE4m3).code(),
            absl::StatusCode::kDataLoss);
}

TEST(OpenCardsTest, ProvesTheKernelsPathsOfAModelAtStart) {
  CardLibraries libraries;
  libraries.plain = [] { return std::make_unique<EmulatedLibrary>(); };
  const auto device =
      OpenCards(std::make_shared<EmulatedRuntime>(), libraries, {0}, {})
          .value();
  ASSERT_TRUE(device->ExpectModel(Sizes(), {}).ok());
  EXPECT_THAT(device->notes(), Contains(HasSubstr("proved at start")));
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
