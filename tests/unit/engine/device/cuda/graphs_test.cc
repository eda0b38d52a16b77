// Small passes by CUDA graphs, over a runtime on the host whose streams
// capture: the bits of plain passes.
#include <gmock/gmock.h>

#include <cstring>
#include <set>
#include <thread>

#include "engine/device/cuda/graphs/graph_cache.h"
#include "tests/unit/engine/device/cuda/graph_harness.h"

namespace encoderd {
namespace cuda {
namespace {

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

TEST_F(CudaGraphTest, GivesTheProductsOfEachSessionAnotherWorkspace) {
  std::set<void*> seen;
  const auto encoder = BuildOdd(
      [&](const Product& product, const void* x, int64_t rows, void* y,
          const OpStream& stream) {
        seen.insert(stream.workspace);
        std::memset(stream.workspace, 1, 64);
        return product.Run(x, rows, y, stream);
      },
      64);
  const PackedBatch batch = Batch({20, 3});
  const auto session = encoder->NewSession({200}).value();
  const ForwardResult plain = RunPass(session.get(), batch);
  for (int i = 0; i < 3; ++i) {
    const ForwardResult by_graph = RunPass(session.get(), batch);
    EXPECT_EQ(by_graph.note, "");
    EXPECT_EQ(by_graph.values, plain.values);
  }
  EXPECT_EQ(runtime_->graphs(), 1);
  EXPECT_EQ(seen.size(), 1U);
  RunPass(encoder->NewSession({200}).value().get(), batch);
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen.count(nullptr), 0U);
}

TEST_F(CudaGraphTest, ServesOtherIdsAndLengthsOfABucketByTheSameGraph) {
  shape_.layers = 1;  // one graph for a list of ops
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

TEST_F(CudaGraphTest, FailsOnlyThePassWhoseReplayHadAnErrorThatPasses) {
  const auto encoder = Build(Card(true));
  const auto session = encoder->NewSession({100}).value();
  const PackedBatch batch = Batch({30});
  const auto want = RunPass(session.get(), batch).values;
  RunPass(session.get(), batch);
  runtime_->Fail("Synchronize", kLaunchOutOfResources);
  EXPECT_EQ(StatusOf(session.get(), batch).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(RunPass(session.get(), batch).values, want);
  EXPECT_EQ(runtime_->graphs(), 1);
}

TEST_F(CudaGraphTest, CopiesNothingAroundAGraphButStates) {
  const auto encoder = Build(Card(true));
  const auto session = encoder->NewSession({100}).value();
  const PackedBatch batch = Batch({30});
  SequenceOutput states;
  states.kind = SequenceOutput::Kind::kStates;
  for (int i = 0; i < 2; ++i) {
    RunPass(session.get(), batch);
    RunPass(session.get(), batch, {states});
  }
  EXPECT_EQ(runtime_->graphs(), 2);
  runtime_->Fail("CopyToDevice", kLaunchOutOfResources);
  runtime_->Fail("CopyToHost", kLaunchOutOfResources);
  RunPass(session.get(), batch);
  ForwardResult result;
  EXPECT_EQ(session->Run(batch, {states}, &result).code(),
            absl::StatusCode::kInternal);
  RunPass(session.get(), batch, {states});
  EXPECT_EQ(runtime_->graphs(), 2);
}

TEST_F(CudaGraphTest, ServesSeveralCardsEachBySeparateGraphs) {
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
    BiasActivationOp op;
    op.y.rows = rows;
    return RecordedOps{op};
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
