#include "server/pipeline/call.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "server/pipeline/work_queue.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

class CountingHost final : public CallHost {
 public:
  void CallFinished() override { ++finished; }
  int finished = 0;
};

class CallTest : public ::testing::Test {
 protected:
  CallTest() {
    call_ = NewCall([this](absl::StatusOr<PipelineResult> result) {
      ++answers_;
      status_ = result.status();
    });
    EXPECT_EQ(StartComputing(call_.get()).size(), 3u);
  }

  std::shared_ptr<Call> NewCall(Call::Done done) {
    return std::make_shared<Call>(1, TextRequest({"a", "b", "c"}),
                                  std::move(done), &host_, queue_,
                                  absl::UnixEpoch());
  }

  RecordingObserver observer_;
  const std::shared_ptr<WorkQueue> queue_ =
      std::make_shared<WorkQueue>(FairShares{1, 1}, &observer_);
  CountingHost host_;
  int answers_ = 0;
  absl::Status status_;
  std::shared_ptr<Call> call_;
};

TEST_F(CallTest, AnswersOnceWhenItsLastSequenceIsAccountedFor) {
  call_->Account(2, absl::UnixEpoch());
  EXPECT_EQ(answers_, 0);
  call_->Account(1, absl::UnixEpoch());
  EXPECT_EQ(answers_, 1);
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(host_.finished, 1);
}

// What `done` captures: sees, when it goes, how often the host was told.
struct Captured {
  explicit Captured(const CountingHost* host, int* told)
      : host(*host), told(*told) {}
  ~Captured() { told = host.finished; }
  const CountingHost& host;
  int& told;
};

TEST_F(CallTest, WhatDoneCapturesGoesBeforeTheHostIsTold) {
  int told = -1;
  const auto call =
      NewCall([captured = std::make_shared<Captured>(&host_, &told)](
                  const absl::StatusOr<PipelineResult>&) {});
  ASSERT_EQ(told, -1);
  call->Fail(Call::Fate::kFailed, DrainingError());
  call->Finish(absl::UnixEpoch());  // as Submit does with a refused one
  EXPECT_EQ(told, 0);
  EXPECT_EQ(host_.finished, 1);
}

TEST_F(CallTest, TheFirstMarkIsTheAnswer) {
  EXPECT_TRUE(call_->Fail(Call::Fate::kGone, ExpiredError()));
  EXPECT_FALSE(call_->Fail(Call::Fate::kFailed, DrainingError()));
  call_->Cancel();
  EXPECT_EQ(call_->fate(), Call::Fate::kGone);
  EXPECT_EQ(answers_, 0);  // a mark does not answer
  call_->Account(3, absl::UnixEpoch());
  EXPECT_EQ(status_, ExpiredError());
  EXPECT_EQ(answers_, 1);
}

// Two threads tokenized it, one for 30 ms and one for 40 ms.
TEST_F(CallTest, SaysHowLongItWaitedAndWasComputed) {
  const absl::Time start = absl::UnixEpoch();
  const struct {
    absl::Duration first_batch;  // after it was submitted
    absl::Duration queue_time;
  } kCases[] = {{absl::Milliseconds(100), absl::Milliseconds(30)},
                // They tokenized at once.
                {absl::Milliseconds(50), absl::ZeroDuration()}};
  for (const auto& test : kCases) {
    PipelineResult result;
    const auto call = NewCall([&](absl::StatusOr<PipelineResult> answer) {
      ASSERT_TRUE(answer.ok());
      result = *std::move(answer);
    });
    EXPECT_FALSE(call->inputs.Account(1, absl::Milliseconds(30)));
    EXPECT_TRUE(call->inputs.Account(2, absl::Milliseconds(40)));
    ASSERT_EQ(StartComputing(call.get()).size(), 3u);
    call->queued_at = start + absl::Milliseconds(45);
    call->first_batch_at = start + test.first_batch;
    call->Account(1, start + absl::Milliseconds(120));
    call->Account(2, start + absl::Milliseconds(250));
    EXPECT_EQ(result.tokenize_time, absl::Milliseconds(70));
    EXPECT_EQ(result.queue_time, test.queue_time);
    EXPECT_EQ(result.compute_time, absl::Milliseconds(250) - test.first_batch);
    EXPECT_EQ(result.stages.tokenized, call->queued_at);
    EXPECT_EQ(result.stages.compute_started, call->first_batch_at);
    EXPECT_EQ(result.stages.computed, start + absl::Milliseconds(250));
  }
}

TEST_F(CallTest, AMarkAfterTheAnswerIsTooLate) {
  call_->Account(3, absl::UnixEpoch());
  EXPECT_FALSE(call_->Fail(Call::Fate::kGone, CancelledError()));
  EXPECT_TRUE(call_->alive());
  EXPECT_EQ(answers_, 1);
}

}  // namespace
}  // namespace encoderd
