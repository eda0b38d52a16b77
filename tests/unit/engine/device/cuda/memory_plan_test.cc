#include "engine/device/cuda/host/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/tensor_table.h"
#include "engine/encoder.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::HasSubstr;

RandomShape BertBase() {
  RandomShape shape;
  shape.layers = 12;
  shape.hidden = 768;
  shape.heads = 12;
  shape.inner = 3072;
  shape.vocabulary = 30522;
  shape.positions = 512;
  return shape;
}

int64_t BytesOf(const RandomShape& shape, DType dtype,
                Operands operands = Operands::kElement) {
  return ModelBytes(WeightSizesOf(RandomConfig(shape)), dtype, operands);
}

TEST(MemoryPlanTest, CountsTheParametersOfBertBase) {
  // 108,891,648 parameters of the encoder; alignment adds under 1 %.
  const int64_t parameters = 108891648;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const int64_t bytes = BytesOf(BertBase(), dtype);
    EXPECT_GE(bytes, parameters * DTypeBytes(dtype));
    EXPECT_LE(bytes, parameters * DTypeBytes(dtype) * 101 / 100);
  }
}

TEST(MemoryPlanTest, CountsWeightsInE4m3WithAScaleForEachRow) {
  // Those of feed-forward-in alone, and what that reads.
  const int64_t weights = 12 * 768 * 3072, rows = 12 * 3072;
  EXPECT_EQ(BytesOf(BertBase(), DType::kBF16) -
                BytesOf(BertBase(), DType::kBF16, Operands::kE4m3),
            weights - 4 * rows);
  ExecutorLimits limits;
  limits.max_batch_tokens = limits.max_batch_sequences = 1000;
  limits.model.hidden_size = 768;
  limits.model.intermediate_size = 3072;
  const SessionPlan plan =
      PlanSession(limits, DType::kBF16, 0, Operands::kE4m3);
  EXPECT_EQ(plan.quantized_bytes, 1000 * (768 + 4));
  EXPECT_EQ(plan.device_bytes(),
            PlanSession(limits, DType::kBF16, 0).device_bytes() + 1000 * 772);
}

TEST(MemoryPlanTest, CountsABiasForEveryDistanceAndHead) {
  RandomShape shape = BertBase();
  const int64_t without = BytesOf(shape, DType::kBF16);
  shape.relative_bias = true;
  const int64_t bytes = BytesOf(shape, DType::kBF16) - without;
  EXPECT_GE(bytes, 4 * 12 * 1023);
  EXPECT_LE(bytes, 4 * 12 * 1023 + 256);
}

TEST(MemoryPlanTest, CountsAGateARotationAndANormAfterAllLayers) {
  const RandomShape plain = BertBase();
  const auto more = [&](const RandomShape& shape) {
    return BytesOf(shape, DType::kBF16) - BytesOf(plain, DType::kBF16);
  };
  RandomShape gated = plain, rotary = plain, pre_norm = plain;
  gated.gated = true;
  EXPECT_EQ(more(gated), 12 * (2 * 768 * 3072 + 4 * 3072));
  rotary.thetas = {10000, 160000};  // in place of a table in bf16
  EXPECT_EQ(more(rotary), 2 * 2 * 4 * 512 * 32 - 2 * 512 * 768);
  pre_norm.pre_norm = true;
  EXPECT_EQ(more(pre_norm), 2 * 4 * 768);
}

TEST(MemoryPlanTest, CountsTheRowsOfAGateAndOfNormsApartFromTheStates) {
  ExecutorLimits limits;
  limits.max_batch_tokens = limits.max_batch_sequences = 1000;
  limits.model.hidden_size = 768;
  limits.model.intermediate_size = 3072;
  const int64_t plain = PlanSession(limits, DType::kBF16, 0).activation_bytes;
  limits.model.gated = true;
  const int64_t gated = PlanSession(limits, DType::kBF16, 0).activation_bytes;
  EXPECT_EQ(gated - plain, 2 * 1000 * 2 * 3072);
  limits.model.pre_norm = true;
  EXPECT_EQ(PlanSession(limits, DType::kBF16, 0).activation_bytes - gated,
            2 * 1000 * 768);
}

TEST(MemoryPlanTest, LaysABatchOutWithoutOverlap) {
  const BatchLayout layout = LayOutBatch(1001, 77, 99, 5);
  EXPECT_EQ(layout.token_ids, 0);
  EXPECT_GE(layout.position_ids, 4004);
  EXPECT_GE(layout.segment_ids - layout.position_ids, 4004);
  EXPECT_GE(layout.attention_work - layout.segment_ids, 4004);
  EXPECT_GE(layout.picked_rows - layout.attention_work, 16 * 77);
  EXPECT_GE(layout.pool_work - layout.picked_rows, 4 * 99);
  EXPECT_GE(layout.bytes - layout.pool_work, 24 * 5);
  EXPECT_LE(layout.bytes, 3 * 4004 + 16 * 77 + 4 * 99 + 24 * 5 + 6 * 256);
  for (const int64_t offset :
       {layout.position_ids, layout.segment_ids, layout.attention_work,
        layout.picked_rows, layout.pool_work})
    EXPECT_EQ(offset % 256, 0);
}

TEST(MemoryPlanTest, HasRoomForEveryBatchOfASession) {
  ExecutorLimits limits;
  limits.max_batch_tokens = limits.max_batch_sequences = 1001;
  limits.model.hidden_size = 768;
  limits.model.intermediate_size = 3072;
  const SessionPlan plan = PlanSession(limits, DType::kBF16, 0);
  EXPECT_EQ(plan.activation_bytes, (6 * 768 + 3072) * 1001 * 2);
  for (const int64_t tokens : {1, 63, 64, 65, 512, 1000, 1001})
    EXPECT_LE(LayOutBatch(tokens, tokens, tokens, tokens).bytes,
              plan.batch_bytes);
  EXPECT_EQ(PlanSession(limits, DType::kBF16, 64).device_bytes(),
            plan.device_bytes() + 64);
}

TEST(MemoryPlanTest, RefusesWhatDoesNotFitWithTheNumbers) {
  EXPECT_TRUE(CheckMemory(1000, 500, 2, 2000).ok());
  const absl::Status status = CheckMemory(1000, 500, 3, 2000);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("2500 bytes in all"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("2000 bytes"));
}

TEST(MemoryPlanTest, IsWhatAModelAndASessionReallyTake) {
  RandomShape shape;
  shape.embedding = 32;
  shape.relative_bias = true;
  const auto runtime = std::make_shared<EmulatedRuntime>();
  const std::vector<std::pair<DType, Operands>> numbers = {
      {DType::kF32, Operands::kElement},
      {DType::kF16, Operands::kElement},
      {DType::kBF16, Operands::kElement},
      {DType::kBF16, Operands::kE4m3}};
  for (const auto& [dtype, operands] : numbers) {
    const auto encoder =
        Encoder::Build(
            NewCudaDevice(runtime, std::make_unique<EmulatedProducts>(), 0,
                          DTypeName(dtype),
                          operands == Operands::kE4m3 ? "fp8" : "dtype")
                .value(),
            RandomConfig(shape), RandomCheckpoint(shape, 1).get())
            .value();
    const int64_t model_bytes = runtime->allocated_bytes();
    EXPECT_LE(model_bytes, BytesOf(shape, dtype, operands));
    // Small pieces, each rounded up to 256 bytes.
    EXPECT_GE(model_bytes + 256 * 64, BytesOf(shape, dtype, operands));

    const auto session = encoder->NewSession({300}).value();
    ExecutorLimits limits;
    limits.max_batch_tokens = limits.max_batch_sequences = 300;
    limits.model = RandomConfig(shape);
    EXPECT_EQ(runtime->allocated_bytes() - model_bytes,
              PlanSession(limits, dtype, 0, operands).device_bytes());
  }
  EXPECT_EQ(runtime->allocations(), 0);
  EXPECT_EQ(runtime->streams(), 0);
}

TEST(MemoryPlanTest, RefusesAModelBeforeItTakesAnything) {
  const RandomShape shape;
  const auto runtime = std::make_shared<EmulatedRuntime>();
  runtime->free_bytes = 1 << 14;
  const auto encoder = Encoder::Build(
      NewCudaDevice(runtime, std::make_unique<EmulatedProducts>(), 0, "bf16")
          .value(),
      RandomConfig(shape), RandomCheckpoint(shape, 1).get());
  EXPECT_EQ(encoder.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(encoder.status().message()),
              HasSubstr("16384 bytes"));
  EXPECT_EQ(runtime->allocations(), 0);
}

// max_batch_tokens may be lower than a full batch's.
TEST(MemoryPlanTest, RefusesAModelOnlyIfItsSmallestSessionDoesNotFit) {
  const auto runtime = std::make_shared<EmulatedRuntime>();
  const auto device =
      NewCudaDevice(runtime, std::make_unique<EmulatedProducts>(), 0, "bf16")
          .value();
  const ModelSizes sizes = RandomConfig(RandomShape());
  const auto bytes = [&](int64_t tokens) {
    return PlanSession({tokens, tokens, sizes}, DType::kBF16, 0).device_bytes();
  };
  const int64_t least = bytes(sizes.max_len);
  const int64_t usual = bytes(device->default_batch_tokens());
  ASSERT_LT(least, usual);
  runtime->free_bytes = (least + usual) / 2;
  EXPECT_TRUE(device->ExpectModel(sizes, {}).ok());
  runtime->free_bytes = least - 1;
  const absl::Status status = device->ExpectModel(sizes, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("use a 16-bit dtype or another card"));
}

TEST(MemoryPlanTest, RefusesASessionThatDoesNotFitBeforeItTakesAnything) {
  const RandomShape shape;
  const auto runtime = std::make_shared<EmulatedRuntime>();
  const auto encoder =
      Encoder::Build(
          NewCudaDevice(runtime, std::make_unique<EmulatedProducts>(), 0,
                        "bf16")
              .value(),
          RandomConfig(shape), RandomCheckpoint(shape, 1).get())
          .value();
  const int64_t before = runtime->allocations();
  const auto session = encoder->NewSession({10000000});
  EXPECT_EQ(session.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(runtime->allocations(), before);
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
