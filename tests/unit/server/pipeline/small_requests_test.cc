#include "server/pipeline/small_requests.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/pipeline/call.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

absl::Time now;
absl::Time Now() { return now; }

// Each pass takes 5 ms; a pass of more than 16 tokens pauses after each of
// them.
class TickingSession final : public Session {
 public:
  int64_t max_batch_tokens() const override { return 16; }
  int64_t scratch_bytes() const override { return 0; }
  void SetPauses(Pauses* pauses) override { pauses_ = pauses; }
  absl::Status Run(const PackedBatch& batch,
                   absl::Span<const SequenceOutput> outputs,
                   ForwardResult* result) override {
    ++passes;
    for (int ms = 0; ms < (batch.num_tokens() > 16 ? 60 : 5); ++ms) {
      now += absl::Milliseconds(1);
      if (pauses_ != nullptr && pauses_->Wanted()) pauses_->Run();
    }
    result->values.assign(outputs.size(), 1);
    result->offsets.clear();
    for (size_t i = 0; i <= outputs.size(); ++i) {
      result->offsets.push_back(static_cast<int64_t>(i));
    }
    return absl::OkStatus();
  }
  int passes = 0;

 private:
  Pauses* pauses_ = nullptr;
};

class NoHost final : public CallHost {
 public:
  void CallFinished() override {}
};

class ComputeTimes final : public RecordingObserver {
 public:
  void StageDuration(Stage stage, absl::Duration duration) override {
    if (stage == Stage::kCompute) times.push_back(duration);
  }
  std::vector<absl::Duration> times;
};

class SmallRequestsTest : public ::testing::Test {
 protected:
  SmallRequestsTest() { now = absl::UnixEpoch(); }

  // A call of one text of `tokens` tokens.
  void Queue(int32_t tokens, absl::Time deadline = absl::InfiniteFuture()) {
    auto request = TextRequest({std::string(tokens - 2, 'x')});
    request.deadline = deadline;
    auto call = std::make_shared<Call>(
        ++id_, std::move(request),
        [this](const absl::StatusOr<PipelineResult>& result) {
          ++answered_;
          expired_ += absl::IsDeadlineExceeded(result.status()) ? 1 : 0;
        },
        &host_, queue_, now);
    auto lengths = StartComputing(call.get());
    ASSERT_EQ(lengths, std::vector<int32_t>{tokens});
    queue_->Add(std::move(call), std::move(lengths), now);
  }
  // The next batch, of at most `tokens`.
  Work Take(int64_t tokens) {
    BatchLimits limits;
    limits.max_tokens = limits.min_tokens = tokens;
    Work work;
    queue_->TryTake(limits, now, &work);
    return work;
  }
  void RunBatch() {
    Work work = Take(64);
    runner_.Run(&work);
  }

  ComputeTimes observer_;
  NoHost host_;
  const std::shared_ptr<WorkQueue> queue_ =
      std::make_shared<WorkQueue>(FairShares{64, 1024, 16}, &observer_);
  TickingSession session_;
  TickingSession of_pauses_;
  SmallRequests small_{&of_pauses_, queue_.get(), FakeLimits(), &observer_,
                       Now};
  BatchRunner runner_{&session_,  queue_.get(), FakeLimits(),
                      &observer_, Now,          &small_};
  uint64_t id_ = 0;
  int answered_ = 0;
  int expired_ = 0;  // of them
};

TEST_F(SmallRequestsTest, HaveHalfOfThePassAndOneBatchMoreAtMost) {
  Queue(40);
  Work work = Take(64);
  for (int i = 0; i < 100; ++i) Queue(16);  // a batch each
  const absl::Time start = now;
  runner_.Run(&work);
  const absl::Duration all = now - start;
  const absl::Duration paused = of_pauses_.passes * absl::Milliseconds(5);
  EXPECT_EQ(all, paused + absl::Milliseconds(60));
  EXPECT_GE(paused, absl::Milliseconds(50));
  EXPECT_LE(paused, absl::Milliseconds(65));
  EXPECT_EQ(answered_, of_pauses_.passes + 1);
  // What the pauses took is not counted twice.
  EXPECT_EQ(observer_.times.back(), absl::Milliseconds(60));
  for (int i = 0; i < 100 && answered_ < 101; ++i) RunBatch();
  EXPECT_EQ(answered_, 101);
}

TEST_F(SmallRequestsTest, ABatchOfSmallRequestsHasNoPauses) {
  for (int i = 0; i < 4; ++i) Queue(16);
  Work work = Take(32);
  ASSERT_TRUE(work.small);
  ASSERT_EQ(work.taken.size(), 2u);
  runner_.Run(&work);
  EXPECT_EQ(of_pauses_.passes, 0);
  EXPECT_EQ(answered_, 2);
  RunBatch();
  EXPECT_EQ(answered_, 4);
}

TEST_F(SmallRequestsTest, WhatIsExpiredIsNotComputed) {
  Queue(40);
  Work work = Take(64);
  Queue(5, now + absl::Microseconds(500));
  runner_.Run(&work);
  EXPECT_EQ(of_pauses_.passes, 0);
  EXPECT_EQ(answered_, 2);
  EXPECT_EQ(expired_, 1);
}

}  // namespace
}  // namespace encoderd
