#include "server/pipeline/small_requests.h"

#include <memory>
#include <string>
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

  // A call of one text of so many tokens.
  void Queue(int32_t tokens) {
    const FakeTokenizer tokenizer;
    const InputEncoder encoder(&tokenizer, FakeLimits());
    const auto scratch = tokenizer.NewScratch();
    Encoding buffer;
    auto call = std::make_shared<Call>(
        ++id_, TextRequest({std::string(tokens - 2, 'x')}),
        [this](const absl::StatusOr<PipelineResult>&) { ++answered_; }, &host_,
        queue_, now);
    call->inputs.Tokenize(0, encoder, scratch.get(), &buffer);
    auto lengths = call->StartComputing(encoder);
    ASSERT_EQ(lengths, std::vector<int32_t>{tokens});
    queue_->Add(std::move(call), std::move(lengths), now);
  }
  // The next batch, with pauses.
  void RunBatch() {
    BatchLimits limits;
    limits.max_tokens = limits.min_tokens = 64;
    Work work;
    queue_->TryTake(limits, now, &work);
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
};

TEST_F(SmallRequestsTest, HaveHalfOfThePassAndOneBatchMoreAtMost) {
  Queue(40);
  BatchLimits limits;
  limits.max_tokens = 64;
  Work work;
  queue_->TryTake(limits, now, &work);
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
  Work work;
  BatchLimits limits;
  limits.max_tokens = limits.min_tokens = 32;
  queue_->TryTake(limits, now, &work);
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
  BatchLimits limits;
  limits.max_tokens = 64;
  Work work;
  queue_->TryTake(limits, now, &work);
  auto request = TextRequest({"abc"});
  const FakeTokenizer tokenizer;
  const InputEncoder encoder(&tokenizer, FakeLimits());
  const auto scratch = tokenizer.NewScratch();
  Encoding buffer;
  absl::Status status;
  request.deadline = now + absl::Microseconds(500);
  auto call = std::make_shared<Call>(
      77, std::move(request),
      [&status](const absl::StatusOr<PipelineResult>& result) {
        status = result.status();
      },
      &host_, queue_, now);
  call->inputs.Tokenize(0, encoder, scratch.get(), &buffer);
  auto lengths = call->StartComputing(encoder);
  queue_->Add(std::move(call), std::move(lengths), now);
  runner_.Run(&work);
  EXPECT_EQ(of_pauses_.passes, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace encoderd
