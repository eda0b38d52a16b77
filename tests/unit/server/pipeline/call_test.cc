#include "server/pipeline/call.h"

#include <memory>

#include "gtest/gtest.h"
#include "server/pipeline/work_queue.h"
#include "tests/unit/server/pipeline/recording_observer.h"

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
    PipelineRequest request;
    request.inputs = {TextInput{"a"}, TextInput{"b"}, TextInput{"c"}};
    call_ = std::make_shared<Call>(
        1, std::move(request),
        [this](absl::StatusOr<PipelineResult> result) {
          ++answers_;
          status_ = result.status();
        },
        &host_, queue_, absl::UnixEpoch());
  }

  RecordingObserver observer_;
  const std::shared_ptr<WorkQueue> queue_ =
      std::make_shared<WorkQueue>(FairShares{1, 1}, &observer_);
  CountingHost host_;
  int answers_ = 0;
  absl::Status status_;
  std::shared_ptr<Call> call_;
};

TEST_F(CallTest, AnswersOnceWhenItsLastInputIsAccountedFor) {
  call_->Account(2, absl::UnixEpoch());
  EXPECT_EQ(answers_, 0);
  call_->Account(1, absl::UnixEpoch());
  EXPECT_EQ(answers_, 1);
  EXPECT_TRUE(status_.ok());
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
