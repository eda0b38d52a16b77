// What follows where a CUDA graph cannot be had, over a runtime on the host
// whose calls fail when they are told to.
#include <gmock/gmock.h>

#include "tests/unit/engine/device/cuda/graph_harness.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::HasSubstr;

TEST_F(CudaGraphTest, ContinuesWithoutGraphsAfterAnyCallThatFails) {
  const auto plain = Build(Card(false));
  const auto plainly = plain->NewSession({100}).value();
  const auto encoder = Build(Card(true));
  for (const char* call :
       {"BeginCapture", "EndCapture", "Instantiate", "LaunchGraph",
        "FillWithNaNs", "CopyToDeviceAndWait"}) {
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

TEST_F(CudaGraphTest, GivesNoResultsOfASmallPassOnADeviceLostMeanwhile) {
  // A small pass calls no copy of the runtime: only its wait can tell.
  std::function<void()> meanwhile;
  const auto encoder =
      BuildOdd([&](const Product& product, const void* x, int64_t rows, void* y,
                   const OpStream& stream) {
        if (const auto run = std::exchange(meanwhile, nullptr)) run();
        return product.Run(x, rows, y, stream);
      });
  const auto session = encoder->NewSession({100}).value();
  const auto other = encoder->NewSession({100}).value();
  meanwhile = [&] {
    runtime_->Fail("Synchronize", kIllegalAddress, 0, true);
    EXPECT_EQ(StatusOf(other.get(), Batch({3})).code(),
              absl::StatusCode::kDataLoss);
  };
  const absl::Status status = StatusOf(session.get(), Batch({30}));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("error 700"));
}

TEST_F(CudaGraphTest, DropsAGraphThatLeavesOutWhatAProductDid) {
  // On its own stream a product is not captured; the plain run before it
  // left the right values where the replay reads.
  const auto encoder = BuildOdd(
      [](const Product& product, const void* x, int64_t rows, void* y,
         const OpStream& stream) { return product.Run(x, rows, y, nullptr); });
  const auto session = encoder->NewSession({100}).value();
  const PackedBatch batch = Batch({30});
  const auto want = RunPass(session.get(), batch);
  const ForwardResult second = RunPass(session.get(), batch);
  EXPECT_THAT(second.note, HasSubstr("bits differ from a plain run"));
  EXPECT_EQ(second.values, want.values);
  EXPECT_EQ(runtime_->graphs(), 0);
  const ForwardResult third = RunPass(session.get(), batch);
  EXPECT_EQ(third.values, want.values);
  EXPECT_EQ(third.note, "");
}

TEST_F(CudaGraphTest, LeavesAStreamInOrderThatAProductMayNotCaptureOn) {
  // It takes memory as it runs, which ends a capture.
  const auto runtime = runtime_;
  const auto encoder =
      BuildOdd([runtime](const Product& product, const void* x, int64_t rows,
                         void* y, const OpStream& stream) {
        DeviceBuffer memory;
        absl::Status status = memory.Take(runtime.get(), 256, "a workspace");
        return status.ok() ? product.Run(x, rows, y, stream) : status;
      });
  const auto session = encoder->NewSession({100}).value();
  const PackedBatch batch = Batch({30});
  const auto want = RunPass(session.get(), batch);
  const ForwardResult second = RunPass(session.get(), batch);
  EXPECT_THAT(second.note, HasSubstr("a workspace: emulated error 900"));
  EXPECT_EQ(second.values, want.values);
  EXPECT_EQ(RunPass(session.get(), batch).values, want.values);
  EXPECT_EQ(runtime_->captures(), 0);
}

TEST_F(CudaGraphTest, KeepsADeviceThatOnlyALibraryCallsLost) {
  // cuBLASLt's CUBLAS_STATUS_EXECUTION_FAILED, for what it may not capture.
  int runs = 0, failing = 0;
  const auto encoder =
      BuildOdd([&](const Product& product, const void* x, int64_t rows, void* y,
                   const OpStream& stream) {
        return ++runs == failing ? absl::DataLossError("a product failed")
                                 : product.Run(x, rows, y, stream);
      });
  const auto session = encoder->NewSession({100}).value();
  const PackedBatch batch = Batch({30});
  const auto want = RunPass(session.get(), batch);
  failing = 2 * runs + 1;  // after the second plain pass: in the capture
  const ForwardResult second = RunPass(session.get(), batch);
  EXPECT_EQ(second.values, want.values);
  EXPECT_THAT(second.note, HasSubstr("a product failed"));
  EXPECT_EQ(RunPass(session.get(), batch).values, want.values);
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
