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

TEST_F(CallTest, AMarkAfterTheAnswerIsTooLate) {
  call_->Account(3, absl::UnixEpoch());
  EXPECT_FALSE(call_->Fail(Call::Fate::kGone, CancelledError()));
  EXPECT_TRUE(call_->alive());
  EXPECT_EQ(answers_, 1);
}

}  // namespace
}  // namespace encoderd
