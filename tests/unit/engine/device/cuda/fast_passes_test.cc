// Launches that overlap: they prove themselves once, and are left where they do
// not. What a graph has to show is in graphs_test.cc.
#include "engine/device/cuda/graphs/fast_passes.h"

#include <gmock/gmock.h>

#include "engine/device/cuda/host/weights.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/support/cuda/emulated_stream.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kLaunchOutOfResources = 701;
constexpr int kIllegalAddress = 700;

// Writes a number, another one from its `wrong`th run on.
class Numbers : public Product {
 public:
  absl::Status Run(const void* x, int64_t rows, void* y,
                   const OpStream& stream) const override {
    if (stream.overlaps && !overlapping.ok()) return overlapping;
    emulation::Put(stream.stream, [this, y] {
      *static_cast<float*>(y) = ++runs > wrong ? 2.0f : 1.0f;
      return 0;
    });
    return absl::OkStatus();
  }
  mutable int runs = 0;
  int wrong = 1000;
  absl::Status overlapping;  // of runs that overlap
};

// y = x, a float. escapes: on another stream, which nobody captures.
class Copies : public Product {
 public:
  explicit Copies(bool escapes) : escapes_(escapes) {}
  absl::Status Run(const void* x, int64_t rows, void* y,
                   const OpStream& stream) const override {
    emulation::Put(escapes_ ? nullptr : stream.stream, [x, y] {
      *static_cast<float*>(y) = *static_cast<const float*>(x);
      return 0;
    });
    return absl::OkStatus();
  }

 private:
  const bool escapes_;
};

class FastPassesTest : public ::testing::Test {
 protected:
  FastPassesTest() {
    EXPECT_TRUE(output_.Take(&runtime_, 4, "a result").ok());
    EXPECT_TRUE(staging_.Take(&runtime_, 4, "a result").ok());
    EXPECT_TRUE(stream_.Take(&runtime_).ok());
    auto product = std::make_unique<Numbers>();
    product_ = product.get();
    weights_.product = std::move(product);
    ProductOp op;
    op.x.rows = 1;
    op.weights = &weights_;
    op.y.data = output_.data();
    ops_ = {op};
  }

  // One pass, as an Executor runs it; how often its product ran.
  int Pass(FastPasses* passes, bool repeats) {
    const int before = product_->runs;
    EXPECT_TRUE(passes->Run(ops_, repeats, stream_.get()).ok());
    const float result = *output_.as<float>();
    EXPECT_EQ(result, 1.0f);
    PassMemory memory;
    memory.output = {output_.data(), 4};
    memory.staging = staging_.as<char>();
    status_ = passes->TryFaster(ops_, &result, 4, memory, stream_.get());
    return product_->runs - before;
  }

  EmulatedRuntime runtime_;
  DeviceBuffer output_;
  PinnedBuffer staging_;
  OwnedStream stream_;
  CudaLinear weights_;
  Numbers* product_;
  RecordedOps ops_;
  absl::Status status_;
};

TEST_F(FastPassesTest, RunsAPassTwiceToProveThatLaunchesMayOverlap) {
  FastPasses passes(&runtime_, /*graphs=*/true, /*overlaps=*/true);
  EXPECT_EQ(Pass(&passes, false), 2);
  EXPECT_EQ(Pass(&passes, false), 1);
  EXPECT_EQ(passes.TakeNote(), "");
  FastPasses plain(&runtime_, true, /*overlaps=*/false);
  EXPECT_EQ(Pass(&plain, false), 1);
}

TEST_F(FastPassesTest, LeavesOverlapsThatGiveOtherBitsAndSaysSoOnce) {
  FastPasses passes(&runtime_, true, true);
  product_->wrong = 1;
  EXPECT_EQ(Pass(&passes, false), 2);
  product_->wrong = 1000;
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(passes.TakeNote(),
            "a session continues without overlapping launches: its bits differ "
            "from a plain run");
  EXPECT_EQ(Pass(&passes, false), 1);
  EXPECT_EQ(passes.TakeNote(), "");
}

TEST_F(FastPassesTest, KeepsADeviceThatALibraryCallsLostInAnOverlap) {
  FastPasses passes(&runtime_, true, true);
  product_->overlapping = absl::DataLossError("a product failed");
  EXPECT_EQ(Pass(&passes, false), 1);
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_EQ(passes.TakeNote(),
            "a session continues without overlapping launches: a product "
            "failed");
}

TEST_F(FastPassesTest, LeavesOverlapsThenGraphsWhereAGraphFails) {
  FastPasses passes(&runtime_, true, true);
  Pass(&passes, true);
  std::vector<std::string> notes;
  for (int i = 0; i < 2; ++i) {
    runtime_.Fail("EndCapture", kLaunchOutOfResources);
    Pass(&passes, true);
    EXPECT_TRUE(status_.ok());
    notes.push_back(passes.TakeNote());
    Pass(&passes, true);  // the list is new again, or nobody asks for a graph
  }
  EXPECT_THAT(notes,
              ElementsAre(HasSubstr("without overlapping launches: ending a"),
                          HasSubstr("without CUDA graphs: ending a capture")));
  EXPECT_FALSE(passes.graphs());
  EXPECT_EQ(runtime_.graphs(), 0);
  EXPECT_EQ(Pass(&passes, true), 1);
}

TEST_F(FastPassesTest, CapturesAGraphWithoutOverlapsOnceTheyFailed) {
  FastPasses passes(&runtime_, true, true);
  Pass(&passes, true);
  runtime_.Fail("LaunchGraph", kLaunchOutOfResources);
  Pass(&passes, true);
  EXPECT_EQ(runtime_.graphs(), 0);
  for (int i = 0; i < 2; ++i) Pass(&passes, true);
  EXPECT_EQ(runtime_.graphs(), 1);
  EXPECT_THAT(passes.TakeNote(), HasSubstr("without overlapping launches"));
}

TEST_F(FastPassesTest, LeavesGraphsOfOverlapsToo) {
  FastPasses passes(&runtime_, true, true);
  for (int i = 0; i < 2; ++i) Pass(&passes, true);
  EXPECT_EQ(runtime_.graphs(), 1);
  product_->wrong = product_->runs + 1;
  Pass(&passes, false);  // overlaps give other bits
  product_->wrong = 1000;
  EXPECT_EQ(runtime_.graphs(), 0);
  for (int i = 0; i < 2; ++i) Pass(&passes, true);
  EXPECT_EQ(runtime_.graphs(), 1);
}

// A graph that leaves out the copy of its batch, or what stores the results in
// their staging, finds neither there already.
TEST_F(FastPassesTest, LeavesAGraphThatLeavesOutACopy) {
  DeviceBuffer batch;
  ASSERT_TRUE(batch.Take(&runtime_, 16, "a batch").ok());
  alignas(16) const float staged[4] = {5.0f};
  for (const bool copies : {true, false}) {
    for (const bool escapes : {true, false}) {
      CudaLinear weights;
      weights.product = std::make_unique<Copies>(escapes);
      ProductOp store;
      store.x.rows = 1;
      store.x.data = batch.data();
      store.weights = &weights;
      store.y.data = staging_.data();
      RecordedOps ops = {store};
      if (copies) ops.insert(ops.begin(), UploadOp{staged, batch.data(), 16});
      FastPasses passes(&runtime_, true, false);
      for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(runtime_.CopyToDeviceAndWait(staged, 16, batch.data()), 0);
        ASSERT_TRUE(passes.Run(ops, true, stream_.get()).ok());
        const float result = *staging_.as<float>();
        EXPECT_EQ(result, 5.0f);
        PassMemory memory;
        memory.batch = {batch.data(), 16};
        memory.staging = staging_.as<char>();
        EXPECT_TRUE(
            passes.TryFaster(ops, &result, 4, memory, stream_.get()).ok());
      }
      EXPECT_EQ(passes.graphs(), copies && !escapes);
    }
  }
}

TEST_F(FastPassesTest, ReturnsAnErrorThatLosesTheDevice) {
  for (const bool repeats : {false, true}) {
    FastPasses passes(&runtime_, true, true);
    if (repeats) Pass(&passes, true);
    runtime_.Fail("Synchronize", kIllegalAddress);
    Pass(&passes, repeats);
    EXPECT_EQ(status_.code(), absl::StatusCode::kDataLoss) << repeats;
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
