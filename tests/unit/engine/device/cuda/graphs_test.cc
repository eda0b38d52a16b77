// Small passes by CUDA graphs, over a runtime on the host whose streams
// capture: the bits of plain passes; and what follows where no graph is had.
#include <gmock/gmock.h>

#include <thread>

#include "engine/device/cuda/graph_cache.h"
#include "engine/device/several_devices.h"
#include "engine/encoder.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::HasSubstr;

constexpr int kIllegalAddress = 700, kLaunchOutOfResources = 701;
constexpr int kStreamCaptureUnsupported = 900;

// Products that do in a capture what some libraries do.
class OddProducts : public EmulatedProducts {
 public:
  using Run = std::function<absl::Status(const Product& product, const void* x,
                                         int64_t rows, void* y, Stream stream)>;
  explicit OddProducts(Run run) : run_(std::move(run)) {}
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args) override {
    return std::unique_ptr<Product>(
        new Odd(EmulatedProducts::Create(args).value(), run_));
  }

 private:
  struct Odd : Product {
    Odd(std::unique_ptr<Product> product, OddProducts::Run run)
        : product(std::move(product)), run(std::move(run)) {}
    absl::Status Run(const void* x, int64_t rows, void* y,
                     Stream stream) const override {
      return run(*product, x, rows, y, stream);
    }
    const std::unique_ptr<Product> product;
    const OddProducts::Run run;
  };
  const Run run_;
};

class CudaGraphTest : public ::testing::Test {
 protected:
  CudaGraphTest() {
    shape_.hidden = 32;
    shape_.heads = 2;
    shape_.inner = 40;
    shape_.positions = 70;
    runtime_->card.compute_major = 8;  // fast_passes_test has what 9 adds
  }

  std::unique_ptr<Device> Card(bool graphs, DType dtype = DType::kF32,
                               int32_t ordinal = 0) const {
    return NewCudaDevice(runtime_, std::make_unique<EmulatedProducts>(),
                         ordinal, DTypeName(dtype), "dtype", graphs)
        .value();
  }
  std::unique_ptr<Device> TwoCards() const {
    runtime_->devices = 2;
    std::vector<std::unique_ptr<Device>> cards;
    cards.push_back(Card(true));
    cards.push_back(Card(true, DType::kF32, 1));
    return JoinDevices(std::move(cards));
  }
  std::unique_ptr<const Encoder> Build(std::unique_ptr<Device> device) const {
    return Encoder::Build(std::move(device), RandomConfig(shape_),
                          RandomLimits(shape_),
                          RandomCheckpoint(shape_, 1).get())
        .value();
  }
  void Append(int32_t length, PackedBatch* batch) {
    batch->Append(RandomSequence(length, RandomLimits(shape_), &random_),
                  RandomLimits(shape_));
  }
  PackedBatch Batch(const std::vector<int32_t>& lengths) {
    PackedBatch batch;
    for (const int32_t length : lengths) Append(length, &batch);
    return batch;
  }
  static ForwardResult RunPass(Session* session, const PackedBatch& batch,
                               std::vector<SequenceOutput> outputs = {}) {
    outputs.resize(batch.num_sequences());
    ForwardResult result;
    const absl::Status status = session->Run(batch, outputs, &result);
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }
  absl::Status StatusOf(Session* session, const PackedBatch& batch) const {
    ForwardResult result;
    return session->Run(
        batch, std::vector<SequenceOutput>(batch.num_sequences()), &result);
  }

  RandomShape shape_;
  std::mt19937 random_{5};
  const std::shared_ptr<EmulatedRuntime> runtime_ =
      std::make_shared<EmulatedRuntime>();
};

TEST_F(CudaGraphTest, RunsPlainThenCapturesThenReplays) {
  const auto encoder = Build(Card(true));
  const auto session = encoder->NewSession({200}).value();
  const auto plain = Build(Card(false));
  const auto plainly = plain->NewSession({200}).value();
  const int64_t captures[] = {0, 1, 1, 1}, launches[] = {0, 1, 2, 3};
  for (int i = 0; i < 4; ++i) {
    const PackedBatch batch = Batch({20, 3});
    const ForwardResult result = RunPass(session.get(), batch);
    EXPECT_EQ(result.note, "");
    EXPECT_EQ(runtime_->captures(), captures[i]);
    EXPECT_EQ(runtime_->launches(), launches[i]);
    EXPECT_EQ(result.values, RunPass(plainly.get(), batch).values);
  }
  EXPECT_EQ(runtime_->graphs(), 1);
}

TEST_F(CudaGraphTest, ServesOtherIdsAndLengthsOfABucketByTheSameGraph) {
  const auto encoder = Build(Card(true, DType::kBF16));
  const auto session = encoder->NewSession({200}).value();
  const auto plain = Build(Card(false, DType::kBF16));
  const auto plainly = plain->NewSession({200}).value();
  for (const std::vector<int32_t>& lengths :
       {std::vector<int32_t>{40, 9}, {33}, {1, 38}, {50}})
    RunPass(session.get(), Batch(lengths));
  // 64 rows with an entry of attention's work, and with two of two paths.
  EXPECT_EQ(runtime_->captures(), 2);
  for (const std::vector<int32_t>& lengths :
       {std::vector<int32_t>{63}, {16, 17}, {34}, {2, 33}}) {
    const PackedBatch batch = Batch(lengths);
    EXPECT_EQ(RunPass(session.get(), batch).values,
              RunPass(plainly.get(), batch).values);
  }
  EXPECT_EQ(runtime_->captures(), 2);
  EXPECT_EQ(runtime_->launches(), 2 + 4);
  // As many, but both of one path: another list of ops.
  RunPass(session.get(), Batch({17, 17}));
  EXPECT_EQ(runtime_->launches(), 2 + 4);
}

TEST_F(CudaGraphTest, ServesEveryPathOfAttentionByOneGraph) {
  shape_.positions = 140;
  shape_.relative_bias = true;
  const auto encoder = Build(Card(true, DType::kBF16));
  const auto session = encoder->NewSession({400}).value();
  const auto plain = Build(Card(false, DType::kBF16));
  const auto plainly = plain->NewSession({400}).value();
  for (const std::vector<int32_t>& lengths :
       {std::vector<int32_t>{5, 130, 40, 100},
        {140, 16, 17, 128},
        {129, 65, 64, 1}}) {
    const PackedBatch batch = Batch(lengths);
    EXPECT_EQ(RunPass(session.get(), batch).values,
              RunPass(plainly.get(), batch).values);
  }
  EXPECT_EQ(runtime_->captures(), 1);
  EXPECT_EQ(runtime_->launches(), 2);
}

TEST_F(CudaGraphTest, GivesTheBitsOfPlainPassesForRandomBatchesAndOutputs) {
  shape_.embedding = 16;
  shape_.relative_bias = true;
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    const auto encoder = Build(Card(true, dtype));
    const auto session = encoder->NewSession({100}).value();
    const auto plain = Build(Card(false, dtype));
    const auto plainly = plain->NewSession({100}).value();
    const int64_t before = runtime_->launches();
    for (int b = 0; b < 24; ++b) {
      PackedBatch batch;
      for (int left = 1 + static_cast<int>(random_() % 3); left > 0; --left)
        Append(1 + static_cast<int32_t>(random_() % 24), &batch);
      std::vector<SequenceOutput> outputs(batch.num_sequences());
      for (SequenceOutput& output : outputs) {
        if (random_() % 2 == 0) output.kind = SequenceOutput::Kind::kStates;
        output.layer = b % 2 == 0 ? kTableSum : 1;
        output.pooling = random_() % 2 == 0 ? Pooling::kMax : Pooling::kMean;
        output.normalize = random_() % 2 == 0;
      }
      const ForwardResult got = RunPass(session.get(), batch, outputs);
      EXPECT_EQ(got.note, "");
      ASSERT_EQ(got.values, RunPass(plainly.get(), batch, outputs).values)
          << DTypeName(dtype) << ", batch " << b;
    }
    EXPECT_GT(runtime_->launches() - before, 4);
  }
}

TEST_F(CudaGraphTest, ServesFullBatchesWhoseWorkListsHaveNoRoomToPad) {
  // Some ops of pooling; with each padded to the bucket they would not fit.
  shape_.positions = 36;
  const auto encoder = Build(Card(true));
  const auto session = encoder->NewSession({36}).value();
  const auto plain = Build(Card(false));
  const auto plainly = plain->NewSession({36}).value();
  for (const int32_t states : {1, 35, 18, 1, 35}) {
    std::vector<SequenceOutput> outputs(36);
    for (int32_t b = 0; b < states; ++b) {
      outputs[b].kind = SequenceOutput::Kind::kStates;
      outputs[b].layer = b % 3;
    }
    const PackedBatch batch = Batch(std::vector<int32_t>(36, 1));
    EXPECT_EQ(RunPass(session.get(), batch, outputs).values,
              RunPass(plainly.get(), batch, outputs).values);
  }
}

TEST_F(CudaGraphTest, CapturesNothingWhereGraphsAreOffOrTheBatchIsLarge) {
  const auto plain = Build(Card(false));
  const auto plainly = plain->NewSession({2100}).value();
  const auto encoder = Build(Card(true));
  const auto session = encoder->NewSession({2100}).value();
  for (int i = 0; i < 3; ++i) {
    RunPass(plainly.get(), Batch({9}));
    SequenceOutput tables;
    tables.kind = SequenceOutput::Kind::kStates;
    RunPass(session.get(), Batch(std::vector<int32_t>(36, 57)),
            std::vector<SequenceOutput>(36, tables));
  }
  EXPECT_EQ(runtime_->captures(), 0);
}

TEST_F(CudaGraphTest, GoesOnWithoutGraphsAfterAnyCallThatFails) {
  const auto plain = Build(Card(false));
  const auto plainly = plain->NewSession({100}).value();
  const auto encoder = Build(Card(true));
  for (const char* call : {"BeginCapture", "EndCapture", "Instantiate",
                           "LaunchGraph", "FillWithNaNs"}) {
    for (const int code : {kLaunchOutOfResources, kStreamCaptureUnsupported}) {
      SCOPED_TRACE(call);
      const auto session = encoder->NewSession({100}).value();
      RunPass(session.get(), Batch({30}));
      runtime_->Fail(call, code);
      for (int i = 0; i < 4; ++i) {
        const PackedBatch batch = Batch({30});
        const ForwardResult result = RunPass(session.get(), batch);
        EXPECT_EQ(result.values, RunPass(plainly.get(), batch).values);
        EXPECT_EQ(result.note.empty(), i > 0) << result.note;
        if (i > 0) continue;
        EXPECT_THAT(
            result.note,
            HasSubstr("cuda:0: a session continues without CUDA graphs"));
        EXPECT_THAT(result.note, HasSubstr(std::to_string(code)));
      }
      EXPECT_EQ(runtime_->graphs(), 0);
    }
  }
}

TEST_F(CudaGraphTest, RunsAPassPlainlyWhoseGraphCannotBeLaunched) {
  const auto plain = Build(Card(false));
  const auto plainly = plain->NewSession({100}).value();
  const auto encoder = Build(Card(true));
  const auto session = encoder->NewSession({100}).value();
  for (int i = 0; i < 2; ++i) RunPass(session.get(), Batch({30}));
  EXPECT_EQ(runtime_->graphs(), 1);
  runtime_->Fail("LaunchGraph", kLaunchOutOfResources);
  const PackedBatch batch = Batch({30});
  const ForwardResult result = RunPass(session.get(), batch);
  EXPECT_EQ(result.values, RunPass(plainly.get(), batch).values);
  EXPECT_THAT(result.note, HasSubstr("launching a graph: emulated error 701"));
  EXPECT_EQ(runtime_->graphs(), 0);
  EXPECT_EQ(RunPass(session.get(), batch).values, result.values);
}

TEST_F(CudaGraphTest, LosesTheDeviceAfterAnErrorOfAGraphThatStays) {
  // Of the launch; of the wait after it; of the wait after the first trial.
  const struct {
    const char* call;
    int number;
    int passes;
  } cases[] = {
      {"LaunchGraph", 0, 2}, {"Synchronize", 0, 2}, {"Synchronize", 1, 1}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.call);
    const auto encoder = Build(Card(true));
    const auto session = encoder->NewSession({100}).value();
    const auto other = encoder->NewSession({100}).value();
    for (int i = 0; i < one.passes; ++i) RunPass(session.get(), Batch({30}));
    runtime_->Fail(one.call, kIllegalAddress, one.number);
    const absl::Status first = StatusOf(session.get(), Batch({30}));
    EXPECT_EQ(first.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(first.message()), HasSubstr("error 700"));
    EXPECT_THAT(std::string(StatusOf(other.get(), Batch({3})).message()),
                HasSubstr("cuda:0 was lost"));
  }
}

TEST_F(CudaGraphTest, FailsOnlyThePassWhoseReplayHadAnErrorThatPasses) {
  const auto encoder = Build(Card(true));
  const auto session = encoder->NewSession({100}).value();
  const PackedBatch batch = Batch({30});
  const auto want = RunPass(session.get(), batch).values;
  RunPass(session.get(), batch);
  for (const char* call : {"CopyToDevice", "CopyToHost", "Synchronize"}) {
    runtime_->Fail(call, kLaunchOutOfResources);
    EXPECT_EQ(StatusOf(session.get(), batch).code(),
              absl::StatusCode::kInternal);
    EXPECT_EQ(RunPass(session.get(), batch).values, want);
  }
  EXPECT_EQ(runtime_->graphs(), 1);
}

TEST_F(CudaGraphTest, DropsAGraphThatLeavesOutWhatAProductDid) {
  // On a stream of its own a product is not captured; the plain run before it
  // left the right values where the replay reads.
  const auto encoder = Build(
      NewCudaDevice(
          runtime_,
          std::make_unique<OddProducts>(
              [](const Product& product, const void* x, int64_t rows, void* y,
                 Stream stream) { return product.Run(x, rows, y, nullptr); }),
          0, "fp32")
          .value());
  const auto session = encoder->NewSession({100}).value();
  const PackedBatch batch = Batch({30});
  const auto want = RunPass(session.get(), batch);
  const ForwardResult second = RunPass(session.get(), batch);
  EXPECT_THAT(second.note, HasSubstr("other bits than a plain run"));
  EXPECT_EQ(second.values, want.values);
  EXPECT_EQ(runtime_->graphs(), 0);
  const ForwardResult third = RunPass(session.get(), batch);
  EXPECT_EQ(third.values, want.values);
  EXPECT_EQ(third.note, "");
}

TEST_F(CudaGraphTest, LeavesAStreamInOrderThatAProductMayNotCaptureOn) {
  // It takes memory as it runs, which ends a capture.
  const auto runtime = runtime_;
  const auto encoder = Build(
      NewCudaDevice(runtime_,
                    std::make_unique<OddProducts>(
                        [runtime](const Product& product, const void* x,
                                  int64_t rows, void* y, Stream stream) {
                          DeviceBuffer memory;
                          absl::Status status =
                              memory.Take(runtime.get(), 256, "a workspace");
                          return status.ok() ? product.Run(x, rows, y, stream)
                                             : status;
                        }),
                    0, "fp32")
          .value());
  const auto session = encoder->NewSession({100}).value();
  const PackedBatch batch = Batch({30});
  const auto want = RunPass(session.get(), batch);
  const ForwardResult second = RunPass(session.get(), batch);
  EXPECT_THAT(second.note, HasSubstr("a workspace: emulated error 900"));
  EXPECT_EQ(second.values, want.values);
  EXPECT_EQ(RunPass(session.get(), batch).values, want.values);
  EXPECT_EQ(runtime_->captures(), 0);
}

TEST_F(CudaGraphTest, ServesSeveralCardsEachByGraphsOfItsOwn) {
  const auto encoder = Build(TwoCards());
  const PackedBatch batch = Batch({11, 20});
  const auto plain = Build(Card(false));
  const auto want =
      RunPass(plain->NewSession({100}).value().get(), batch).values;
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 4; ++i)
    sessions.push_back(encoder->NewSession({100}).value());
  std::vector<std::thread> threads;
  for (const auto& session : sessions) {
    threads.emplace_back([&] {
      for (int i = 0; i < 4; ++i) {
        const ForwardResult result = RunPass(session.get(), batch);
        EXPECT_EQ(result.values, want);
        EXPECT_EQ(result.note, "");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runtime_->captures(), 4);
  EXPECT_EQ(runtime_->launches(), 4 * 3);
  sessions.clear();
  EXPECT_EQ(runtime_->graphs(), 0);
}

TEST_F(CudaGraphTest, TellsEveryCardWhetherGraphsAreAllowed) {
  auto device = TwoCards();
  device->AllowGraphs(false);
  const auto encoder = Build(std::move(device));
  for (int s = 0; s < 2; ++s) {
    const auto session = encoder->NewSession({100}).value();
    for (int i = 0; i < 3; ++i) RunPass(session.get(), Batch({2}));
  }
  EXPECT_EQ(runtime_->captures(), 0);
}

TEST_F(CudaGraphTest, RemembersABoundedNumberOfLists) {
  Stream stream = nullptr;
  ASSERT_EQ(runtime_->NewStream(&stream), 0);
  const auto ops = [](int64_t rows) {
    BiasActivationArgs args = {};
    args.rows = rows;
    return RecordedOps{args};
  };
  GraphCache cache;
  const auto most = static_cast<int64_t>(GraphCache::kMost);
  for (int64_t i = 0; i < most; ++i) {
    GraphCache::Entry* entry = cache.See(ops(i));
    EXPECT_EQ(entry->seen, 1);
    entry->graph = CaptureOps({}, runtime_.get(), stream).value();
  }
  EXPECT_EQ(runtime_->graphs(), most);
  EXPECT_EQ(cache.See(ops(0))->seen, 2);  // the oldest is now 1
  EXPECT_EQ(cache.See(ops(most))->graph.get(), nullptr);
  EXPECT_EQ(runtime_->graphs(), most - 1);
  EXPECT_EQ(cache.See(ops(0))->seen, 3);
  EXPECT_EQ(cache.See(ops(1))->seen, 1);
  EXPECT_EQ(cache.See(ops(most))->seen, 2);
  cache.Clear();
  EXPECT_EQ(runtime_->graphs(), 0);
  runtime_->FreeStream(stream);
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
