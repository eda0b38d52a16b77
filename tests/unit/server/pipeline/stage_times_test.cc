// How long the stages of a call take, by a clock of the test.
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/pipeline/batch_runner.h"
#include "server/pipeline/work_queue.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

absl::Time now;
// Whatever is between two readings takes a millisecond.
absl::Time Tick() { return now += absl::Milliseconds(1); }

class SlowSession final : public Session {
 public:
  int64_t max_batch_tokens() const override { return 10; }
  int64_t scratch_bytes() const override { return 0; }
  absl::Status Run(const PackedBatch&, absl::Span<const SequenceOutput> outputs,
                   ForwardResult* result) override {
    now += absl::Milliseconds(60);
    result->values.assign(outputs.size(), 1);
    result->offsets.clear();
    for (size_t i = 0; i <= outputs.size(); ++i) {
      result->offsets.push_back(static_cast<int64_t>(i));
    }
    return absl::OkStatus();
  }
};

class NoHost final : public CallHost {
 public:
  void CallFinished() override {}
};

TEST(StageTimesTest, EachStageIsMeasuredFromWhereItBegins) {
  const absl::Time submitted = absl::UnixEpoch();
  const auto at = [&](int ms) { return submitted + absl::Milliseconds(ms); };
  RecordingObserver observer;
  const auto queue =
      std::make_shared<WorkQueue>(FairShares{10, 10, 0}, &observer);
  SlowSession session;
  BatchRunner runner(&session, queue.get(), FakeLimits(), &observer, Tick);
  NoHost host;
  PipelineResult result;
  auto call = std::make_shared<Call>(
      1, TextRequest({"12345678", "23456789"}),
      [&](absl::StatusOr<PipelineResult> answer) {
        ASSERT_TRUE(answer.ok());
        result = *std::move(answer);
      },
      &host, queue, submitted);
  auto lengths = StartComputing(call.get());
  ASSERT_EQ(lengths, (std::vector<int32_t>{10, 10}));
  queue->Add(std::move(call), std::move(lengths), at(10));

  BatchLimits limits;
  limits.max_tokens = limits.min_tokens = 10;  // a text
  for (const int ms : {30, 200}) {
    Work work;
    queue->TryTake(limits, at(ms), &work);
    ASSERT_EQ(work.taken.size(), 1u);
    now = at(ms);
    runner.Run(&work);
  }

  const auto durations = observer.seen().durations;
  // A call waits for its first batch.
  EXPECT_EQ(durations.at(Stage::kQueue).count, 1);
  EXPECT_EQ(durations.at(Stage::kQueue).sum, absl::Milliseconds(20));
  EXPECT_EQ(durations.at(Stage::kBatch).count, 2);
  EXPECT_EQ(durations.at(Stage::kBatch).sum, absl::Milliseconds(1 + 1));
  EXPECT_EQ(durations.at(Stage::kCompute).count, 2);
  EXPECT_EQ(durations.at(Stage::kCompute).sum, absl::Milliseconds(61 + 61));
  EXPECT_EQ(result.stages.tokenized, at(10));
  EXPECT_EQ(result.stages.compute_started, at(30));
  EXPECT_GE(result.stages.computed, at(260));
}

}  // namespace
}  // namespace encoderd
