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
  weights.by_8_bits = true;
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
  const auto encoder =
      Encoder::Build(std::move(device), RandomConfig(shape),
                     RandomLimits(shape), RandomCheckpoint(shape, 1).get())
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
