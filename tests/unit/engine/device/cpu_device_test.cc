#include "engine/device/cpu/cpu_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/device/device.h"

namespace encoderd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(OpenDeviceTest, ComputesInFp32UnlessAskedOtherwise) {
  for (const char* dtype : {"auto", "fp32"}) {
    const auto opened = OpenDevice("cpu", dtype);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->dtype(), DType::kF32);
    EXPECT_THAT((*opened)->name(), HasSubstr("cpu ("));
    EXPECT_THAT((*opened)->name(), HasSubstr(IsaName(cpu::DetectIsa())));
    EXPECT_GE((*opened)->preferred_sessions(), 1);
  }
}

TEST(OpenDeviceTest, TakesACardThatServesAndElseTheCpuSayingWhy) {
  const auto card = OpenDevice("cuda", "auto");
  const auto chosen = OpenDevice("auto", "auto");
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  ASSERT_FALSE((*chosen)->notes().empty());
  const std::string& why = (*chosen)->notes()[0];
  if (card.ok()) {
    EXPECT_EQ((*chosen)->name(), (*card)->name());
    EXPECT_EQ(why, "device auto: using the first GPU");
  } else {
    EXPECT_THAT((*chosen)->name(), HasSubstr("cpu ("));
    const std::string start =
        "device auto: using the CPU because no GPU can be used: ";
    ASSERT_EQ(why.rfind(start, 0), 0u) << why;
    EXPECT_EQ(std::string(card.status().message()),
              why.substr(start.size()) +
                  "; device auto falls back to the CPU if no GPU can be used");
  }
}

TEST(OpenDeviceTest, RefusesACardThatNoMachineHas) {
  EXPECT_FALSE(OpenDevice("cuda:9999", "auto").ok());
}

TEST(OpenDeviceTest, ComputesInBf16OnEveryCpu) {
  for (const cpu::Isa isa : cpu::kIsas) {
    if (!cpu::HasIsa(isa)) continue;
    const auto opened = OpenDevice(std::string("cpu:") + IsaName(isa), "bf16");
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->dtype(), DType::kBF16);
  }
}

TEST(OpenDeviceTest, ComputesWithTheInstructionsThatItIsTold) {
  const cpu::Isa best = cpu::DetectIsa();
  for (const cpu::Isa isa : cpu::kIsas) {
    const auto opened = OpenDevice(std::string("cpu:") + IsaName(isa), "fp32");
    if (!cpu::HasIsa(isa)) {
      EXPECT_EQ(opened.status().code(), absl::StatusCode::kUnimplemented);
      EXPECT_THAT(std::string(opened.status().message()),
                  HasSubstr(std::string(") has ") + IsaName(best)));
      continue;
    }
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_THAT((*opened)->name(),
                HasSubstr(std::string(", ") + IsaName(isa) + ")"));
  }
}

TEST(OpenDeviceTest, OpensInt8ProductsWhereTheCpuHasThem) {
  const auto opened = OpenDevice("cpu", "auto", "", "int8");
  if (cpu::HasVnni()) {
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->products(), "int8");
    EXPECT_EQ((*opened)->dtype(), DType::kBF16);
    EXPECT_TRUE(OpenDevice("cpu:avx512", "auto", "", "int8").ok());
    for (const std::string device : {"cpu:portable", "cpu:avx2"}) {
      const auto older = OpenDevice(device, "auto", "", "int8").status();
      EXPECT_EQ(older.code(), absl::StatusCode::kUnimplemented);
      EXPECT_THAT(std::string(older.message()),
                  AllOf(HasSubstr("device \"" + device + "\" excludes it"),
                        HasSubstr("or products dtype")));
    }
  } else {
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(opened.status().message()),
                AllOf(HasSubstr("int8 products need avx512_vnni; this CPU ("),
                      HasSubstr("choose products dtype")));
  }
  EXPECT_THAT(
      std::string(OpenDevice("cpu", "fp32", "", "int8").status().message()),
      HasSubstr("choose dtype auto or bf16"));
}

TEST(OpenDeviceTest, RefusesWhatItDoesNotKnowByName) {
  for (const std::string device :
       {"tpu", "cpu:sse9", "cuda:", "cuda:x", "cuda:-1", "cuda:0,",
        "cuda:0,cpu", "cuda,cuda:1"}) {
    EXPECT_THAT(std::string(OpenDevice(device, "auto").status().message()),
                HasSubstr("\"" + device + "\" is not supported"));
  }
  EXPECT_THAT(std::string(OpenDevice("cpu", "int4").status().message()),
              HasSubstr("\"int4\""));
  EXPECT_THAT(
      std::string(OpenDevice("cpu", "auto", "", "fp8").status().message()),
      HasSubstr("\"fp8\" are not supported on a CPU"));
  if (!OpenDevice("cuda", "auto").ok()) {
    EXPECT_THAT(
        std::string(OpenDevice("auto", "auto", "", "fp8").status().message()),
        HasSubstr("not supported on a CPU; choose products dtype or int8, or a "
                  "GPU: "));
    const absl::Status half = OpenDevice("auto", "fp16").status();
    EXPECT_THAT(std::string(half.message()),
                HasSubstr("dtype \"fp16\" is not supported on a CPU; choose "
                          "auto, fp32 or bf16, or a GPU: "));
  }
  EXPECT_EQ(cpu::OpenCpu(DType::kF16, cpu::DetectIsa()).status().code(),
            absl::StatusCode::kUnimplemented);
}

// An executor for batches of up to 8 tokens, 4 wide, 2 heads.
std::unique_ptr<Executor> SmallExecutor(const Device& device) {
  ExecutorLimits limits;
  limits.max_batch_tokens = 8;
  limits.max_batch_sequences = 8;
  limits.model.max_len = 8;
  limits.model.hidden_size = 4;
  limits.model.num_attention_heads = 2;
  return device.NewExecutor(limits).value();
}

TEST(CpuExecutorTest, TurnsToNoOpsAfterAnErrorAndBackOnUpload) {
  const auto device = OpenDevice("cpu", "fp32").value();
  LinearWeights weights;
  weights.weight = {4, 4, std::vector<float>(16, 1.0f)};
  weights.bias.assign(4, 0.0f);
  const auto linear = device->PrepareLinear(weights, Activation::kNone).value();
  const auto executor = SmallExecutor(*device);
  const Matrix x = executor->Allocate(8, 4).value();
  const Matrix y = executor->Allocate(8, 4).value();
  auto* xs = static_cast<float*>(x.data);
  auto* ys = static_cast<float*>(y.data);
  std::fill(xs, xs + 32, 1.0f);
  std::fill(ys, ys + 32, -1.0f);

  PackedBatch batch;
  TokenSequence sequence;
  sequence.token_ids.assign(9, 0);
  batch.Append(sequence, IdLimits());
  ForwardResult result;
  executor->Upload(batch);
  executor->Run(ProductOp{x, linear.get(), y});
  EXPECT_EQ(executor->Finish(&result).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ys[0], -1.0f);

  batch.Clear();
  sequence.token_ids.assign(8, 0);
  batch.Append(sequence, IdLimits());
  executor->Upload(batch);
  executor->Run(ProductOp{x, linear.get(), y});
  EXPECT_TRUE(executor->Finish(&result).ok());
  EXPECT_EQ(ys[0], 4.0f);
}

PackedBatch BatchOf(const std::vector<int>& lengths) {
  PackedBatch batch;
  TokenSequence sequence;
  for (const int length : lengths) {
    sequence.token_ids.assign(length, 0);
    batch.Append(sequence, IdLimits());
  }
  return batch;
}

TEST(CpuExecutorTest, MultipliesOnlyTheRowsOfItsView) {
  const auto device = OpenDevice("cpu", "fp32").value();
  LinearWeights weights;
  weights.weight = {4, 4, std::vector<float>(16, 1.0f)};
  weights.bias.assign(4, 0.5f);
  const auto linear = device->PrepareLinear(weights, Activation::kRelu).value();
  // As the next layer does.
  std::fill(weights.weight.data.begin(), weights.weight.data.end(), 9.0f);
  std::fill(weights.bias.begin(), weights.bias.end(), 9.0f);
  const auto executor = SmallExecutor(*device);
  const Matrix x = executor->Allocate(8, 4).value();
  const Matrix y = executor->Allocate(8, 4).value();
  auto* xs = static_cast<float*>(x.data);
  auto* ys = static_cast<float*>(y.data);
  for (int i = 0; i < 32; ++i) xs[i] = static_cast<float>(i / 4 - 3);
  std::fill(ys, ys + 32, -7.0f);
  const PackedBatch batch = BatchOf({8});
  ForwardResult result;
  executor->Upload(batch);
  executor->Run(ProductOp{RowsOf(x, 2, 4), linear.get(), RowsOf(y, 2, 4)});
  EXPECT_TRUE(executor->Finish(&result).ok());
  const std::vector<float> want = {-7, -7, 0, 0.5f, 4.5f, 8.5f, -7, -7};
  for (int row = 0; row < 8; ++row) EXPECT_EQ(ys[row * 4], want[row]) << row;
}

TEST(CpuExecutorTest, RotatesByThePreparedTablesAndTheBatchsPositions) {
  const auto device = OpenDevice("cpu", "fp32").value();
  // A quarter turn for each position.
  const std::vector<float> cos = {1, 0, -1, 0, 1, 0, -1, 0};
  const std::vector<float> sin = {0, 1, 0, -1, 0, 1, 0, -1};
  const auto rotation =
      device->PrepareRotation({8, 1, cos}, {8, 1, sin}).value();
  ASSERT_EQ(rotation->pairs, 1);
  const auto executor = SmallExecutor(*device);
  const Matrix qkv = executor->Allocate(8, 12).value();
  auto* values = static_cast<float*>(qkv.data);
  for (int i = 0; i < 96; ++i) values[i] = static_cast<float>(i);
  const PackedBatch batch = BatchOf({8});
  ForwardResult result;
  const BatchRef ids = executor->Upload(batch);
  RotateOp op;
  op.qkv = qkv;
  op.heads = 2;
  op.head_size = 2;
  op.cos = rotation->cos;
  op.sin = rotation->sin;
  op.pairs = rotation->pairs;
  op.position_ids = ids.position_ids;
  executor->Run(op);
  EXPECT_TRUE(executor->Finish(&result).ok());
  for (int i = 0; i < 96; i += 2) {
    const int32_t position = ids.position_ids[i / 12];
    const bool is_value = i % 12 >= 8;
    const float c = is_value ? 1 : cos[position];
    const float s = is_value ? 0 : sin[position];
    const auto x = static_cast<float>(i), y = static_cast<float>(i + 1);
    EXPECT_EQ(values[i], x * c - y * s) << i;
    EXPECT_EQ(values[i + 1], y * c + x * s) << i;
  }
}

TEST(CpuDeviceTest, KeepsTablesInTheirDtypeUnlessTheyDiffer) {
  const auto device = OpenDevice("cpu", "fp32").value();
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    EmbeddingWeights weights;
    weights.token = HostTable(5, 4, dtype);
    weights.segment = HostTable(2, 4, dtype);
    const void* const token = weights.token.data();
    const auto same = device->PrepareEmbeddings(std::move(weights), 1).value();
    EXPECT_EQ(same->tables.dtype, dtype);
    EXPECT_EQ(same->tables.token, token);  // not copied
    EXPECT_EQ(same->tables.position, nullptr);
  }
  EmbeddingWeights weights;
  weights.token = HostTable(1, 2, DType::kBF16);
  weights.token.halves = {0x3f80, 0xc000};
  weights.position = HostMatrix{1, 2, {3, 4}};
  weights.segment = HostTable(1, 2, DType::kF16);
  weights.segment.halves = {0x3c00, 0xc000};
  const auto mixed = device->PrepareEmbeddings(std::move(weights), 1).value();
  ASSERT_EQ(mixed->tables.dtype, DType::kF32);
  const std::pair<const void*, std::vector<float>> kRows[] = {
      {mixed->tables.token, {1, -2}},
      {mixed->tables.position, {3, 4}},
      {mixed->tables.segment, {1, -2}}};
  for (const auto& [table, want] : kRows) {
    const auto* row = static_cast<const float*>(table);
    EXPECT_EQ(std::vector<float>(row, row + 2), want);
  }
}

TEST(CpuDeviceTest, RefusesARotationWhoseTablesDoNotFit) {
  const auto device = OpenDevice("cpu", "fp32").value();
  const auto refused = [&](const HostMatrix& cos, const HostMatrix& sin) {
    const absl::Status status = device->PrepareRotation(cos, sin).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const auto table = [](int64_t rows, int64_t cols) {
    return HostMatrix{rows, cols, std::vector<float>(rows * cols)};
  };
  EXPECT_EQ(refused(table(8, 2), table(8, 1)),
            "a rotation's cosines are [8,2], its sines [8,1]; both must have "
            "one shape");
  EXPECT_THAT(refused(table(8, 2), table(9, 2)), HasSubstr("its sines [9,2]"));
  ModelSizes sizes;
  sizes.hidden_size = 12;
  sizes.num_attention_heads = 2;
  ASSERT_TRUE(device->ExpectModel(sizes, {}).ok());
  EXPECT_EQ(refused(table(8, 4), table(8, 4)),
            "a rotation of 4 pairs; a head of 6 columns has at most 3");
  EXPECT_TRUE(device->PrepareRotation(table(8, 3), table(8, 3)).ok());
}

// Q|K|V of 8 rows: no scores, so that a context is the mean of the values that
// a row sees, and the number of the row in each of its 4 values.
Matrix RowNumbers(Executor* executor) {
  const Matrix qkv = executor->Allocate(8, 12).value();
  auto* values = static_cast<float*>(qkv.data);
  for (int i = 0; i < 96; ++i)
    values[i] = i % 12 < 8 ? 0 : static_cast<float>(i / 12);
  return qkv;
}

TEST(CpuExecutorTest, AttendsWithinReachOfEachSequenceAlone) {
  const auto device = OpenDevice("cpu", "fp32").value();
  const auto executor = SmallExecutor(*device);
  const Matrix qkv = RowNumbers(executor.get());
  const Matrix context = executor->Allocate(8, 4).value();
  const PackedBatch batch = BatchOf({5, 3});
  ForwardResult result;
  executor->Upload(batch);
  AttentionOp op;
  op.qkv = qkv;
  op.heads = 2;
  op.head_size = 2;
  op.reach = {1, 0};
  op.context = context;
  executor->Run(op);
  EXPECT_TRUE(executor->Finish(&result).ok());
  const std::vector<float> want = {0, 0.5f, 1.5f, 2.5f, 3.5f, 5, 5.5f, 6.5f};
  for (int row = 0; row < 8; ++row)
    EXPECT_EQ(static_cast<float*>(context.data)[row * 4], want[row]) << row;
}

TEST(CpuExecutorTest, AttendsToTheNeededRowOfEachSequenceOfAnOp) {
  const auto device = OpenDevice("cpu", "fp32").value();
  const auto executor = SmallExecutor(*device);
  const Matrix qkv = RowNumbers(executor.get());
  const Matrix context = executor->Allocate(8, 4).value();
  auto* contexts = static_cast<float*>(context.data);
  std::fill_n(contexts, 32, -1.0f);
  const PackedBatch batch = BatchOf({2, 3, 1, 2});
  ForwardResult result;
  executor->Upload(batch);
  const int32_t needed_rows[] = {9, 1, 0, 1};
  AttentionOp op;
  op.qkv = RowsOf(qkv, 2, 6);
  op.heads = 2;
  op.head_size = 2;
  op.reach = {1, 0};
  op.first_sequence = 1;
  op.sequence_count = 3;
  op.needed_rows = needed_rows;
  op.context = RowsOf(context, 1, 3);
  EXPECT_TRUE(executor->attends_needed_rows());
  executor->Run(op);
  EXPECT_TRUE(executor->Finish(&result).ok());
  const std::vector<float> want = {-1, 2.5f, 5, 6.5f, -1};
  for (int row = 0; row < 5; ++row) {
    for (int column = 0; column < 4; ++column)
      EXPECT_EQ(contexts[row * 4 + column], want[row]) << row;
  }
}

TEST(CpuExecutorTest, PicksTheRowsOfAList) {
  const auto device = OpenDevice("cpu", "fp32").value();
  const auto executor = SmallExecutor(*device);
  const Matrix x = RowNumbers(executor.get());
  const Matrix y = executor->Allocate(4, x.cols).value();
  auto* picked = static_cast<float*>(y.data);
  std::fill_n(picked, 4 * x.cols, -1.0f);
  const PackedBatch batch = BatchOf({3, 5});
  ForwardResult result;
  const int32_t rows[] = {2, 7};
  EXPECT_EQ(executor->Upload(batch).sequences, 2);
  executor->Run(PickRowsOp{x, rows, 2, RowsOf(y, 1, 2)});
  EXPECT_TRUE(executor->Finish(&result).ok());
  const std::vector<float> want = {-1, 2, 7, -1};
  for (int row = 0; row < 4; ++row) {
    for (int64_t column = 8; column < x.cols; ++column)
      EXPECT_EQ(picked[row * x.cols + column], want[row]) << row;
  }
}

TEST(CpuExecutorTest, PoolsAndGivesTheRowsThatItIsAskedFor) {
  const auto device = OpenDevice("cpu", "fp32").value();
  const auto executor = SmallExecutor(*device);
  const Matrix x = executor->Allocate(8, 4).value();
  for (int i = 0; i < 32; ++i)
    static_cast<float*>(x.data)[i] = static_cast<float>(i / 4);
  const PackedBatch batch = BatchOf({8});
  ForwardResult result;
  result.values.assign(16, -1.0f);
  const PoolWork work[] = {{0, 2, 2, Pooling::kMean, false, true},
                           {4, 5, 0, Pooling::kMean, false, false},
                           {8, 6, 2, Pooling::kCls, true, false}};
  executor->Upload(batch);
  executor->Run(PoolOp{x, work, 3, result.values.data()});
  EXPECT_TRUE(executor->Finish(&result).ok());
  const std::vector<float> want = {0.5f, 0.5f, 0.5f, 0.5f, -1, -1, -1, -1,
                                   6,    6,    6,    6,    7,  7,  7,  7};
  EXPECT_EQ(result.values, want);
}

}  // namespace
}  // namespace encoderd
