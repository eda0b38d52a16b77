// What ops are said to compute and move, by hand.
#include "engine/device/cuda/graphs/op_costs.h"

#include <gmock/gmock.h>

#include "engine/device/cuda/host/weights.h"
#include "engine/encoder.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::ElementsAre;

TEST(OpCostsTest, CountsAProductItsOperandsAndItsResidual) {
  CudaLinear weights;
  ProductOp op;
  op.x = {nullptr, 100, 64, DType::kBF16};
  op.weights = &weights;
  op.y = {nullptr, 100, 32, DType::kBF16};
  OpTime cost = CostOf(op, {0, 100}, 0);
  EXPECT_EQ(cost.op, "product 64 -> 32");
  EXPECT_EQ(cost.flops, 2.0 * 100 * 64 * 32);
  EXPECT_EQ(cost.bytes, 2 * (100 * 64 + 32 * 64 + 100 * 32));
  op.residual = &op;
  weights.in_fp8 = true;
  cost = CostOf(op, {0, 100}, 0);
  EXPECT_EQ(cost.op, "product 64 -> 32 (e4m3) + residual");
  EXPECT_EQ(cost.bytes, 100 * 64 + 32 * 64 + 2 * 2 * 100 * 32);
}

TEST(OpCostsTest, CountsAttentionByTheSquaresOfTheLengths) {
  AttentionOp op;
  op.qkv = {nullptr, 50, 96, DType::kF16};
  op.heads = 4;
  op.head_size = 8;
  op.context = {nullptr, 50, 32, DType::kF16};
  const std::vector<int32_t> ends = {0, 3, 10, 50};
  OpTime cost = CostOf(op, ends, /*attention_paths=*/0);
  EXPECT_EQ(cost.op, "attention general");
  EXPECT_EQ(cost.flops, 4.0 * (9 + 49 + 1600) * 32);
  EXPECT_EQ(cost.bytes, 4 * 50 * 32 * 2);
  // Each path its own sequences.
  op.path = AttentionPath::kWarp;
  cost = CostOf(op, ends, kAllAttentionPaths);
  EXPECT_EQ(cost.op, "attention warp");
  EXPECT_EQ(cost.flops, 4.0 * (9 + 49) * 32);
  EXPECT_EQ(cost.bytes, 4 * 10 * 32 * 2);
}

TEST(OpCostsTest, CountsThePairsWithinReachAlone) {
  AttentionOp op;
  op.qkv = {nullptr, 12, 24, DType::kF16};
  op.heads = 1;
  op.head_size = 8;
  op.context = {nullptr, 12, 8, DType::kF16};
  const std::vector<int32_t> lengths = {1, 2, 9};
  for (const Reach& reach : {Reach{-1, 0}, Reach{2, 1}, Reach{0, 0},
                             Reach{8, -1}, Reach{100, 3}, Reach{1, 9}}) {
    op.reach = reach;
    double pairs = 0;
    for (const int32_t n : lengths) {
      for (int32_t i = 0; i < n; ++i) {
        for (int32_t j = 0; j < n; ++j) {
          if ((reach.left < 0 || i - j <= reach.left) &&
              (reach.right < 0 || j - i <= reach.right))
            ++pairs;
        }
      }
    }
    EXPECT_EQ(CostOf(op, {0, 1, 3, 12}, 0).flops, 4 * pairs * 8)
        << reach.left << " " << reach.right;
  }
}

TEST(OpCostsTest, CountsTheColumnsThatARotationTurns) {
  RotateOp op;
  op.qkv = {nullptr, 10, 3 * 64, DType::kBF16};
  op.heads = 4;
  op.head_size = 16;
  op.pairs = 8;
  EXPECT_EQ(CostOf(op, {0, 10}, 0).bytes, 2 * 2 * 10 * 2 * 64);
  op.pairs = 4;
  EXPECT_EQ(CostOf(op, {0, 10}, 0).bytes, 2 * 2 * 10 * 2 * 32);
}

TEST(OpCostsTest, ObservesEveryOpOfAPassInOrderWithItsTime) {
  RandomShape shape;
  shape.layers = 1;
  const auto runtime = std::make_shared<EmulatedRuntime>();
  auto device =
      NewCudaDevice(runtime, std::make_unique<EmulatedProducts>(), 0, "fp32")
          .value();
  std::vector<std::string> ops;
  ASSERT_TRUE(device->ObserveOps([&](const OpTime& time) {
    ops.push_back(time.op.substr(0, time.op.find(' ')));
    EXPECT_GT(time.seconds, 0);
    EXPECT_GT(time.bytes, 0);
  }));
  const auto encoder = Encoder::Build(std::move(device), RandomConfig(shape),
                                      RandomCheckpoint(shape, 1).get())
                           .value();
  const auto session = encoder->NewSession({100}).value();
  std::mt19937 random(1);
  PackedBatch batch;
  batch.Append(RandomSequence(20, RandomLimits(shape), &random),
               RandomLimits(shape));
  ForwardResult result;
  ASSERT_TRUE(session->Run(batch, {SequenceOutput()}, &result).ok());
  EXPECT_THAT(ops, ElementsAre("embed_tokens", "product", "attention",
                               "product", "layer_norm", "product", "bias_gelu",
                               "product", "layer_norm", "pool"));
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
