// Rows in e4m3 that LayerNorm writes itself: the bits of quantize_rows, the
// proof that they are, and where a pass lets it.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>

#include "engine/device/cuda/graphs/recorded_ops.h"
#include "engine/device/cuda/host/norm_proof.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::HasSubstr;

struct NormRows {
  std::vector<char> y, quantized;
};

// LayerNorm of x, and what is there of it in e4m3, by one op or by two.
NormRows NormAndQuantize(const std::vector<float>& x, int32_t hidden,
                         DType dtype, bool fused) {
  std::mt19937 random(5);
  const int64_t rows = static_cast<int64_t>(x.size()) / hidden;
  std::vector<float> gains = RandomValues(hidden, DType::kF32, &random);
  for (float& gain : gains)
    gain = std::ldexp(gain, -static_cast<int>(random() % 12));
  const OnCard gain(gains, DType::kF32);
  const OnCard bias(RandomValues(hidden, DType::kF32, &random, 1e-3f),
                    DType::kF32);
  const OnCard x_card(x, dtype), y(2 * rows * hidden);
  const OnCard quantized(E4m3RowsBytes(rows, hidden));
  AddNormOp op;
  op.x = op.residual = x_card.View(rows, hidden, dtype);
  op.norm = {gain.as<float>(), bias.as<float>(), 1e-12f};
  op.y = y.View(rows, hidden, dtype);
  if (fused) op.quantized = quantized.data();
  EXPECT_EQ(Start(op, nullptr), 0);
  if (!fused) {
    EXPECT_EQ(Start(QuantizeRowsOp{op.y, quantized.data()}, nullptr), 0);
  }
  return {y.Bytes(), quantized.Bytes()};
}

TEST(NormE4m3Test, WritesWhatQuantizeRowsMakesOfItsRowsAtEveryWidth) {
  std::mt19937 random(1);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const int32_t hidden :
         {16, 64, 256, 272, 384, 768, 1024, 1040, 2048, 4096}) {
      const auto x = RandomValues(5 * hidden, dtype, &random);
      const NormRows one = NormAndQuantize(x, hidden, dtype, true);
      const NormRows two = NormAndQuantize(x, hidden, dtype, false);
      EXPECT_EQ(one.y, two.y) << DTypeName(dtype) << " " << hidden;
      EXPECT_EQ(one.quantized, two.quantized)
          << DTypeName(dtype) << " " << hidden;
    }
  }
}

TEST(NormE4m3Test, GivesARowTheSameCodesInAnyBatch) {
  std::mt19937 random(2);
  const int32_t hidden = 272, rows = 11;
  const auto x = RandomValues(rows * hidden, DType::kBF16, &random);
  const NormRows all = NormAndQuantize(x, hidden, DType::kBF16, true);
  for (int batch = 0; batch < 200; ++batch) {
    const auto count = static_cast<int32_t>(1 + random() % 9);
    std::vector<float> some;
    std::vector<int32_t> which(count);
    for (int32_t& row : which) {
      row = static_cast<int32_t>(random() % rows);
      some.insert(some.end(), x.begin() + row * hidden,
                  x.begin() + (row + 1) * hidden);
    }
    const NormRows got = NormAndQuantize(some, hidden, DType::kBF16, true);
    for (int32_t i = 0; i < count; ++i) {
      ASSERT_EQ(std::memcmp(got.quantized.data() + i * hidden,
                            all.quantized.data() + which[i] * hidden, hidden),
                0);
      ASSERT_EQ(
          std::memcmp(got.quantized.data() + count * hidden + 4 * i,
                      all.quantized.data() + rows * hidden + 4 * which[i], 4),
          0);
    }
  }
}

absl::Status Prove(DType element, int32_t hidden, std::string* figures,
                   NormStart norm = &Start) {
  return ProveNormQuantizes(TestRuntime().get(), element, hidden, nullptr,
                            figures, norm);
}

TEST(NormProofTest, ProvesTheKernelForBothElements) {
  for (const DType element : {DType::kF16, DType::kBF16}) {
    for (const int32_t hidden : {16, 384, 1040}) {
      std::string figures;
      const absl::Status status = Prove(element, hidden, &figures);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_THAT(figures, HasSubstr("all bytes equal"));
    }
  }
}

// Ops that are wrong in one way each; these two change what the right one
// wrote, at `offset` of the rows in e4m3.
template <typename T>
int Spoil(const AddNormOp& op, const OpStream& stream, int64_t offset,
          T wrong) {
  const int code = Start(op, stream);
  if (op.quantized == nullptr || code != 0) return code;
  TestRuntime()->Synchronize(stream.stream);
  return TestRuntime()->CopyToDeviceAndWait(
      &wrong, sizeof(wrong), static_cast<char*>(op.quantized) + offset);
}
int WrongScale(const AddNormOp& op, const OpStream& stream) {
  return Spoil(op, stream, op.y.rows * op.y.cols + 4 * 7, 1e30f);
}
int WrongCode(const AddNormOp& op, const OpStream& stream) {
  return Spoil(op, stream, 3, uint8_t{0x7f});
}
int NoCodes(const AddNormOp& op, const OpStream& stream) {
  AddNormOp without = op;
  without.quantized = nullptr;
  return Start(without, stream);
}
int OtherValues(const AddNormOp& op, const OpStream& stream) {
  AddNormOp other = op;
  other.norm.eps = 1.0f;
  return Start(other, stream);
}
int WrongSum(const AddNormOp& op, const OpStream& stream) {
  const int code = Start(op, stream);
  if (op.sum.data == nullptr || code != 0) return code;
  TestRuntime()->Synchronize(stream.stream);
  const uint16_t wrong = 0x1234;
  return TestRuntime()->CopyToDeviceAndWait(
      &wrong, 2, static_cast<char*>(op.sum.data) + 2 * (5 * op.y.cols + 1));
}
int NoSumOfXAlone(const AddNormOp& op, const OpStream& stream) {
  AddNormOp without = op;
  if (op.residual.data == nullptr) without.sum = Matrix();
  return Start(without, stream);
}
int Fails(const AddNormOp&, const OpStream&) { return 701; }

TEST(NormProofTest, RefusesAKernelThatIsWrongAnywhere) {
  const std::vector<std::pair<NormStart, std::string>> wrong = {
      {&WrongScale, "row 7 another scale in e4m3"},
      {&WrongCode, "row 0 another code in e4m3"},
      {&NoCodes, "another code in e4m3"},
      {&OtherValues, "another value"},
      {&WrongSum, "with a residual gives row 5 another sum"},
      {&NoSumOfXAlone, "without a residual gives row 0 another sum"},
      {&Fails, TestRuntime()->ErrorText(701)}};
  for (const auto& [norm, what] : wrong) {
    std::string figures;
    const absl::Status status = Prove(DType::kBF16, 64, &figures, norm);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    EXPECT_THAT(figures, HasSubstr(what));
  }
}

class QuantizeInNormTest : public ::testing::Test {
 protected:
  QuantizeInNormTest() {
    norm_.y = quantize_.x = {memory_, 7, 32, DType::kBF16};
    quantize_.y = memory_ + 1;
  }

  char memory_[2] = {};
  AddNormOp norm_;
  QuantizeRowsOp quantize_;
};

TEST_F(QuantizeInNormTest, LetsTheNormJustBeforeWriteTheRows) {
  RecordedOps ops = {norm_};
  EXPECT_TRUE(QuantizeInNorm(quantize_, &ops));
  AddNormOp want = norm_;
  want.quantized = quantize_.y;
  EXPECT_EQ(ops, RecordedOps{want});
}

TEST_F(QuantizeInNormTest, LeavesOtherOpsAsTheyAre) {
  AddNormOp rows = norm_, columns = norm_, elsewhere = norm_;
  ++rows.y.rows;
  columns.y.cols = 16;
  elsewhere.y.data = memory_ + 1;
  for (const RecordedOps& before :
       {RecordedOps{}, RecordedOps{rows}, RecordedOps{columns},
        RecordedOps{elsewhere}, RecordedOps{norm_, AttentionOp{}}}) {
    RecordedOps ops = before;
    EXPECT_FALSE(QuantizeInNorm(quantize_, &ops));
    EXPECT_EQ(ops, before);
  }
  // In float only quantize_rows writes them.
  norm_.y.dtype = quantize_.x.dtype = DType::kF32;
  RecordedOps ops = {norm_};
  EXPECT_FALSE(QuantizeInNorm(quantize_, &ops));
  EXPECT_EQ(ops, RecordedOps{norm_});
}

constexpr int32_t kHidden = 48, kTokens = 21, kMaxTokens = 64;

LinearWeights RandomLinear(int64_t in, int64_t out, std::mt19937* random) {
  LinearWeights linear;
  linear.weight = {out, in, RandomValues(out * in, DType::kF32, random)};
  linear.bias = RandomValues(out, DType::kF32, random);
  linear.allow_fp8 = true;
  return linear;
}

std::unique_ptr<Executor> NewExecutor(bool fused) {
  const auto context = std::make_shared<Context>();
  context->runtime = TestRuntime();
  context->dtype = DType::kBF16;
  context->operands = Operands::kE4m3;
  context->fused_e4m3 = fused;
  ExecutorLimits limits;
  limits.max_batch_tokens = limits.max_batch_sequences = kMaxTokens;
  limits.model.max_len = kMaxTokens;
  limits.model.num_attention_heads = 1;
  limits.model.hidden_size = limits.model.intermediate_size = kHidden;
  return CudaExecutor::Create(context, limits).value();
}

PackedBatch RandomBatch(std::mt19937* random) {
  PackedBatch batch;
  batch.token_ids.resize(kTokens);
  for (int32_t& id : batch.token_ids)
    id = static_cast<int32_t>((*random)() % 9);
  batch.position_ids.resize(kTokens);
  batch.segment_ids.resize(kTokens);
  batch.cu_seqlens = {0, kTokens};
  batch.max_seqlen = kTokens;
  return batch;
}

// Token states after a norm and a product in e4m3, of `passes` like passes (a
// graph serves the last).
std::vector<std::vector<float>> StatesOfPasses(bool fused, int passes) {
  std::mt19937 random(4);
  const auto values = [&random](int64_t count) {
    return RandomValues(count, DType::kF32, &random);
  };
  const auto device = OpenTestCard(DType::kBF16, "fp8");
  EmbeddingWeights tables;
  tables.token = HostMatrix{9, kHidden, values(9 * kHidden)};
  tables.norm = {values(kHidden), values(kHidden)};
  const auto embeddings = device->PrepareEmbeddings(tables, 1e-6f).value();
  const auto norm =
      device->PrepareNorm({values(kHidden), values(kHidden)}, 1e-6f).value();
  const auto product =
      device
          ->PrepareLinear(RandomLinear(kHidden, kHidden, &random),
                          Activation::kGeluErf)
          .value();
  const auto executor = NewExecutor(fused);
  const Matrix all_x = executor->Allocate(kMaxTokens, kHidden).value();
  const Matrix all_y = executor->Allocate(kMaxTokens, kHidden).value();
  const PackedBatch batch = RandomBatch(&random);
  const PoolWork states = {0, 0, kTokens, Pooling::kCls, true, false};
  std::vector<std::vector<float>> all;
  for (int pass = 0; pass < passes; ++pass) {
    ForwardResult result;
    result.offsets = {0, kTokens * kHidden};
    result.values.resize(kTokens * kHidden);
    const BatchRef ids = executor->Upload(batch);
    const Matrix x = RowsOf(all_x, 0, ids.rows), y = RowsOf(all_y, 0, ids.rows);
    executor->Run(EmbedOp{embeddings->tables, ids, embeddings->norm, x});
    executor->Run(AddNormOp{x, x, norm->norm, Matrix(), x});
    executor->Run(ProductOp{x, product.get(), y});
    executor->Run(PoolOp{y, &states, 1, result.values.data()});
    const absl::Status status = executor->Finish(&result);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(result.note, "");
    all.push_back(result.values);
  }
  return all;
}

TEST(NormE4m3Test, GivesAPassTheSameBitsAsQuantizeRows) {
  if (!HasE4m3()) GTEST_SKIP() << "fp8 products need compute capability 9.0";
  const auto plain = StatesOfPasses(/*fused=*/false, 1);
  for (const auto& states : StatesOfPasses(/*fused=*/true, 3))
    EXPECT_EQ(states, plain[0]);
}

TEST(NormE4m3Test, RefusesRowsThatItHasNoMemoryFor) {
  if (!HasE4m3()) GTEST_SKIP() << "fp8 products need compute capability 9.0";
  std::mt19937 random(6);
  const auto device = OpenTestCard(DType::kBF16, "fp8");
  const auto product = device
                           ->PrepareLinear(RandomLinear(192, kHidden, &random),
                                           Activation::kNone)
                           .value();
  const auto executor = NewExecutor(/*fused=*/true);
  const Matrix x = executor->Allocate(kMaxTokens, 192).value();
  const Matrix y = executor->Allocate(kMaxTokens, kHidden).value();
  const PackedBatch batch = RandomBatch(&random);
  const int64_t rows = executor->Upload(batch).rows;
  executor->Run(
      ProductOp{RowsOf(x, 0, rows), product.get(), RowsOf(y, 0, rows)});
  ForwardResult result;
  const absl::Status status = executor->Finish(&result);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rows of 192 columns in e4m3 exceed the 3328 bytes"));
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
