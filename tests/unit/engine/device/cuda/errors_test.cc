// What goes wrong on a card, by a runtime that fails when it is told to.
#include <gmock/gmock.h>

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/cuda/host/agreement.h"
#include "engine/encoder.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kLaunchOutOfResources = 701;
constexpr int kIllegalAddress = 700;
constexpr int kNoDevice = 100;

absl::StatusOr<std::unique_ptr<Device>> Open(
    std::shared_ptr<EmulatedRuntime> runtime, int32_t ordinal,
    const std::string& dtype, const std::string& operands = "dtype") {
  return NewCudaDevice(std::move(runtime), std::make_unique<EmulatedProducts>(),
                       ordinal, dtype, operands);
}

// Runs `meanwhile` once, while results are on their way to the host.
class BusyRuntime : public EmulatedRuntime {
 public:
  std::function<void()> meanwhile;

  int CopyToHost(const void* from, int64_t bytes, void* to,
                 Stream stream) override {
    const auto run = std::exchange(meanwhile, nullptr);
    if (run != nullptr) run();
    return EmulatedRuntime::CopyToHost(from, bytes, to, stream);
  }
};

class CudaErrorTest : public ::testing::Test {
 protected:
  // Without graphs passes copy batch and results, as large ones do.
  absl::StatusOr<std::unique_ptr<const Encoder>> Build(
      const RandomShape& shape, bool graphs = true) const {
    auto device = Open(runtime_, 0, "bf16").value();
    device->AllowGraphs(graphs);
    return Encoder::Build(std::move(device), RandomConfig(shape),
                          RandomCheckpoint(shape, 1).get());
  }

  absl::Status RunPass(Session* session) const {
    PackedBatch batch;
    TokenSequence sequence;
    sequence.token_ids = {1, 2, 3};
    batch.Append(sequence, RandomLimits(shape_));
    ForwardResult result;
    return session->Run(batch, {SequenceOutput()}, &result);
  }

  RandomShape shape_;
  const std::shared_ptr<BusyRuntime> runtime_ = std::make_shared<BusyRuntime>();
};

TEST_F(CudaErrorTest, NamesTheCardThatIsNotThere) {
  for (const int32_t ordinal : {1, -1}) {
    const auto opened = Open(runtime_, ordinal, "auto");
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(opened.status().message()),
                HasSubstr("1 devices are visible"));
  }
}

TEST_F(CudaErrorTest, RefusesACardThatIsTooOldAndADtypeItLacks) {
  runtime_->card = {"Old Card", 7, 5, 1 << 30};
  const auto old = Open(runtime_, 0, "auto");
  EXPECT_EQ(old.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(old.status().message()),
              HasSubstr("compute capability 7.5; at least 8.0"));
  EXPECT_THAT(std::string(Open(runtime_, 0, "int8").status().message()),
              HasSubstr("\"int8\""));
}

TEST_F(CudaErrorTest, TakesBf16UnlessAskedOtherwiseAndSaysWhatItIs) {
  EXPECT_EQ(Open(runtime_, 0, "auto").value()->dtype(), DType::kBF16);
  EXPECT_EQ(Open(runtime_, 0, "fp16").value()->dtype(), DType::kF16);
  EXPECT_EQ(Open(runtime_, 0, "fp32").value()->dtype(), DType::kF32);
  EXPECT_EQ(Open(runtime_, 0, "auto").value()->name(),
            "cuda:0 (Emulated Card, compute capability 9.0, 1.00 GiB, loops)");
}

TEST_F(CudaErrorTest, SaysThatItsProductsAreFp8) {
  const auto device = Open(runtime_, 0, "auto", "fp8").value();
  EXPECT_EQ(device->dtype(), DType::kBF16);
  EXPECT_EQ(device->products(), "fp8");
  EXPECT_THAT(device->name(), HasSubstr(", fp8 products)"));
  EXPECT_EQ(Open(runtime_, 0, "fp16").value()->products(), "fp16");
}

TEST_F(CudaErrorTest, RefusesFp8WhereTheCardTheDtypeOrTheShapeLacksIt) {
  const std::vector<std::pair<int, int>> others = {
      {8, 0}, {8, 6}, {8, 9}, {10, 0}, {12, 0}};
  for (const auto& [major, minor] : others) {
    runtime_->card = {"Other Card", major, minor, 1 << 30};
    const auto opened = Open(runtime_, 0, "auto", "fp8");
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(opened.status().message()),
                HasSubstr("(Other Card) has compute capability " +
                          std::to_string(major) + "." + std::to_string(minor) +
                          "; fp8 products need 9.0"));
    EXPECT_TRUE(Open(runtime_, 0, "auto").ok());
  }
  runtime_->card = {"Hopper", 9, 0, 1 << 30};
  EXPECT_THAT(std::string(Open(runtime_, 0, "fp32", "fp8").status().message()),
              HasSubstr("choose dtype auto, bf16 or fp16"));
  EXPECT_THAT(std::string(Open(runtime_, 0, "auto", "int8").status().message()),
              HasSubstr("\"int8\" are not supported; choose dtype or fp8"));
  RandomShape odd;
  odd.inner = 136;  // a multiple of 8 only
  const auto built =
      Encoder::Build(Open(runtime_, 0, "auto", "fp8").value(),
                     RandomConfig(odd), RandomCheckpoint(odd, 1).get());
  EXPECT_EQ(built.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(built.status().message()),
              HasSubstr("rows of 136 cannot be multiplied in fp8"));
  EXPECT_EQ(runtime_->allocations(), 0);
}

TEST_F(CudaErrorTest, RefusesShapesThatTheKernelsDoNotTake) {
  RandomShape narrow;
  narrow.hidden = 60;
  RandomShape odd_heads;
  odd_heads.hidden = 48;  // head size 12
  RandomShape wide_heads;
  wide_heads.hidden = 272;
  wide_heads.heads = 2;
  RandomShape odd_tables;
  odd_tables.embedding = 12;
  RandomShape wide_tables;
  wide_tables.embedding = 4104;
  for (const RandomShape& shape :
       {narrow, odd_heads, wide_heads, odd_tables, wide_tables}) {
    const absl::Status status = Build(shape).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()), HasSubstr("choose device cpu"));
  }
}

TEST_F(CudaErrorTest, ReportsEveryCallThatFailsWhileItLoads) {
  RandomShape biased;
  biased.relative_bias = true;
  for (const char* call :
       {"UseDevice", "FreeBytes", "Allocate", "CopyToDeviceAndWait"}) {
    // The first UseDevice is to ask what the kernels were compiled for: without
    // an answer launches do not overlap.
    for (int number = std::string(call) == "UseDevice" ? 1 : 0;; ++number) {
      runtime_->Fail(call, kLaunchOutOfResources, number);
      const auto built = Build(biased);
      if (built.ok()) {
        EXPECT_GT(number, 0) << call;
        runtime_->Fail(call, 0);  // forgets what did not come about
        break;
      }
      EXPECT_EQ(built.status().code(), absl::StatusCode::kInternal) << call;
    }
    EXPECT_EQ(runtime_->allocations(), 0);
  }
}

TEST_F(CudaErrorTest, ReportsEveryCallThatFailsInANewSession) {
  const auto encoder = Build(shape_).value();
  const int64_t before = runtime_->allocations();
  for (const char* call :
       {"UseDevice", "FreeBytes", "NewStream", "Allocate", "AllocatePinned"}) {
    for (int number = 0;; ++number) {
      runtime_->Fail(call, kLaunchOutOfResources, number);
      const bool made = encoder->NewSession({100}).ok();
      EXPECT_EQ(runtime_->allocations(), before);
      EXPECT_EQ(runtime_->streams(), 0);
      if (!made) continue;
      EXPECT_GT(number, 0) << call;
      runtime_->Fail(call, 0);
      break;
    }
  }
}

TEST_F(CudaErrorTest, FailsOnePassAndServesTheNextAfterAnErrorThatPasses) {
  const auto encoder = Build(shape_, /*graphs=*/false).value();
  const auto session = encoder->NewSession({100}).value();
  for (const char* call : {"CopyToDevice", "CopyToHost", "UseDevice"}) {
    runtime_->Fail(call, kLaunchOutOfResources);
    const absl::Status status = RunPass(session.get());
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << call;
    EXPECT_THAT(std::string(status.message()), HasSubstr("error 701"));
    EXPECT_TRUE(RunPass(session.get()).ok());
  }
}

TEST_F(CudaErrorTest, LosesTheDeviceForEverySessionAfterAnErrorThatStays) {
  const auto encoder = Build(shape_).value();
  const auto session = encoder->NewSession({100}).value();
  const auto other = encoder->NewSession({100}).value();
  EXPECT_TRUE(RunPass(other.get()).ok());
  runtime_->Fail("Synchronize", kIllegalAddress);
  const absl::Status first = RunPass(session.get());
  EXPECT_EQ(first.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(first.message()), HasSubstr("error 700"));
  for (Session* any : {session.get(), other.get()}) {
    const absl::Status later = RunPass(any);
    EXPECT_EQ(later.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(later.message()), HasSubstr("cuda:0 was lost"));
  }
}

TEST_F(CudaErrorTest, GivesNoResultsThatNobodyWaitedForOnALostDevice) {
  const auto encoder = Build(shape_, /*graphs=*/false).value();
  const auto session = encoder->NewSession({100}).value();
  const auto other = encoder->NewSession({100}).value();
  runtime_->meanwhile = [&] {
    runtime_->Fail("Synchronize", kIllegalAddress, 0, true);
    EXPECT_EQ(RunPass(other.get()).code(), absl::StatusCode::kDataLoss);
  };
  const absl::Status status = RunPass(session.get());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("error 700"));
}

TEST_F(CudaErrorTest, ReportsTheFirstErrorOfAPass) {
  const auto encoder = Build(shape_, /*graphs=*/false).value();
  const auto session = encoder->NewSession({100}).value();
  runtime_->Fail("CopyToDevice", kLaunchOutOfResources);
  runtime_->Fail("Synchronize", 9);
  EXPECT_THAT(std::string(RunPass(session.get()).message()),
              HasSubstr("upload: emulated error 701"));
}

ExecutorLimits SmallLimits() {
  ExecutorLimits limits;
  limits.max_batch_tokens = 8;
  limits.max_batch_sequences = 8;
  limits.model.max_len = 8;
  limits.model.hidden_size = 8;
  limits.model.num_attention_heads = 1;
  limits.model.intermediate_size = 8;
  return limits;
}

PackedBatch BatchOf(int32_t tokens) {
  PackedBatch batch;
  TokenSequence sequence;
  sequence.token_ids.assign(tokens, 0);
  batch.Append(sequence, IdLimits());
  return batch;
}

TEST_F(CudaErrorTest, RefusesABatchOverTheExecutorsLimits) {
  const auto device = Open(runtime_, 0, "bf16").value();
  const auto executor = device->NewExecutor(SmallLimits()).value();
  const PackedBatch batch = BatchOf(9);
  executor->Upload(batch);
  ForwardResult result;
  const absl::Status status = executor->Finish(&result);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("9 tokens"));
}

TEST_F(CudaErrorTest, RefusesActivationsBeyondThePlan) {
  const auto device = Open(runtime_, 0, "bf16").value();
  ExecutorLimits limits = SmallLimits();
  for (const bool pre_norm : {false, true}) {
    limits.model.pre_norm = pre_norm;
    const auto executor = device->NewExecutor(limits).value();
    const int64_t columns = limits.model.scratch_columns();
    ASSERT_TRUE(executor->Allocate(8, columns - 8).ok());
    const absl::Status status = executor->Allocate(8, 9).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(status.message(),
              absl::StrCat("activations of 8 rows and 9 columns take 144 "
                           "bytes; 128 of the ",
                           16 * columns, " that were planned are available"));
    EXPECT_TRUE(executor->Allocate(8, 8).ok());
  }
}

TEST_F(CudaErrorTest, RefusesAReachThatTheModelDoesNotHave) {
  const auto device = Open(runtime_, 0, "bf16").value();
  ExecutorLimits limits = SmallLimits();
  limits.model.reaches = {{2, 2}};
  const auto executor = device->NewExecutor(limits).value();
  AttentionOp op;
  op.qkv = executor->Allocate(8, 24).value();
  op.context = executor->Allocate(8, 8).value();
  op.heads = 1;
  op.head_size = 8;
  const PackedBatch batch = BatchOf(8);
  ForwardResult result;
  for (const Reach& reach : {Reach(), Reach{2, 2}, Reach{2, 1}, Reach{-1, 0}}) {
    op.reach = reach;
    executor->Upload(batch);
    executor->Run(op);
    const absl::Status status = executor->Finish(&result);
    if (reach == Reach() || reach == Reach{2, 2}) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr(absl::StrCat("reach ", reach.left, " and ", reach.right,
                               " is not among those of this executor's")));
  }
}

TEST_F(CudaErrorTest, RefusesAResidualThatIsNotAlignedAndASecondList) {
  const auto device = Open(runtime_, 0, "bf16").value();
  const auto executor = device->NewExecutor(SmallLimits()).value();
  const Matrix x = executor->Allocate(8, 8).value();
  const Matrix y = executor->Allocate(8, 8).value();
  const PackedBatch batch = BatchOf(8);
  const int32_t one[] = {3}, other[] = {3};
  const auto run = [&](const std::vector<Op>& ops) {
    ForwardResult result;
    executor->Upload(batch);
    for (const Op& op : ops) executor->Run(op);
    return std::string(executor->Finish(&result).message());
  };
  const PickRowsOp pick = {x, one, 1, RowsOf(y, 0, 1)};
  PickRowsOp second = pick;
  EXPECT_EQ(run({pick, second}), "");
  second.rows = other;
  EXPECT_EQ(run({pick, second}), "a pass picks rows by two lists");
  AddNormOp norm;
  norm.x = norm.y = RowsOf(y, 0, 1);
  norm.residual = RowsOf(x, 1, 1);
  EXPECT_EQ(run({norm}), "a residual whose rows are not aligned to 256");
}

// The device proves the reaches of the model that it is told to expect.
TEST_F(CudaErrorTest, ServesAReachThatWasNotProvedByTheGeneralKernel) {
  for (const bool proved : {true, false}) {
    const auto device =
        NewCudaDevice(runtime_, std::make_unique<EmulatedProducts>(), 0, "bf16",
                      "dtype", /*graphs=*/true, std::make_shared<Agreement>())
            .value();
    std::vector<std::string> ops;
    device->ObserveOps([&](const OpTime& time) { ops.push_back(time.op); });
    ExecutorLimits limits = SmallLimits();
    if (proved) limits.model.reaches = {{2, 2}};
    ASSERT_TRUE(device->ExpectModel(limits.model, {}).ok());
    limits.model.reaches = {{2, 2}};
    const auto executor = device->NewExecutor(limits).value();
    AttentionOp op;
    op.qkv = executor->Allocate(8, 24).value();
    op.context = executor->Allocate(8, 8).value();
    op.heads = 1;
    op.head_size = 8;
    op.reach = {2, 2};
    const PackedBatch batch = BatchOf(8);
    ForwardResult result;
    executor->Upload(batch);
    executor->Run(op);
    EXPECT_TRUE(executor->Finish(&result).ok());
    EXPECT_THAT(ops,
                ElementsAre(proved ? "attention warp" : "attention general"));
  }
}

TEST_F(CudaErrorTest, RefusesARotationWhoseTablesDoNotFit) {
  const auto device = Open(runtime_, 0, "bf16").value();
  const auto table = [](int64_t rows, int64_t cols) {
    return HostMatrix{rows, cols, std::vector<float>(rows * cols)};
  };
  ASSERT_TRUE(device->ExpectModel(SmallLimits().model, {}).ok());
  EXPECT_TRUE(device->PrepareRotation(table(8, 4), table(8, 4)).ok());
  const std::vector<std::pair<HostMatrix, HostMatrix>> wrong = {
      {table(8, 4), table(8, 3)},
      {table(8, 4), table(7, 4)},
      {table(8, 5), table(8, 5)}};
  for (const auto& [cos, sin] : wrong) {
    EXPECT_EQ(device->PrepareRotation(cos, sin).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(CudaErrorTest, SaysWhyThereIsNoDevice) {
  runtime_->Fail("CountDevices", kNoDevice);
  EXPECT_THAT(std::string(Open(runtime_, 0, "auto").status().message()),
              HasSubstr("error 100"));
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
