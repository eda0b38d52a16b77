// SubmitWork: long work in addition to tokenizing and computing.
#include "server/pipeline/side_lane.h"

#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/pipeline.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

// A piece of work that stands still until it is let go, if it is to.
class Piece {
 public:
  explicit Piece(PipelineHarness* harness, uint64_t caller = 1,
                 bool held = false,
                 absl::Time deadline = absl::InfiniteFuture()) {
    if (!held) Release();
    call_ = harness->pipeline->SubmitWork(
        caller, deadline, [state = state_](const absl::Status& status) {
          state->started.set_value(status);
          if (status.ok()) state->released.get_future().wait();
        });
  }

  ~Piece() {
    if (!released_) Release();
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  void Release() {
    released_ = true;
    state_->released.set_value();
  }
  void Cancel() { call_->Cancel(); }
  // What it was told; waits for its turn.
  const absl::Status& Status() { return started_.get(); }
  std::string Reason() { return Status().ok() ? "OK" : ReasonOf(Status()); }
  bool had_its_turn() const {
    return started_.wait_for(std::chrono::seconds(0)) ==
           std::future_status::ready;
  }

 private:
  bool released_ = false;
  struct State {
    std::promise<absl::Status> started;
    std::promise<void> released;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::shared_future<absl::Status> started_ =
      state_->started.get_future().share();
  std::shared_ptr<PipelineCall> call_;
};

TEST(SideLaneTest, WorkGoesOneAtATimeAndKeepsNoTextWaiting) {
  PipelineHarness harness;  // one tokenizer thread
  Piece first(&harness, 1, true);
  EXPECT_EQ(first.Reason(), "OK");
  Piece second(&harness, 2);
  EXPECT_TRUE(harness.Submit({"a text meanwhile"}).Get().ok());
  EXPECT_FALSE(second.had_its_turn());
  first.Release();
  EXPECT_EQ(second.Reason(), "OK");
}

// Refused from within the call, whatever waits.
void ExpectFull(PipelineHarness* harness, uint64_t caller,
                const absl::Status& expected) {
  Piece piece(harness, caller);
  ASSERT_TRUE(piece.had_its_turn());
  EXPECT_EQ(piece.Status(), expected);
}

TEST(SideLaneTest, OneCallerMayHaveFourWaitingAndAllTogetherSixteen) {
  PipelineHarness harness;
  Piece first(&harness, 1, true);
  EXPECT_EQ(first.Reason(), "OK");
  std::vector<std::unique_ptr<Piece>> waiting;
  for (int i = 0; i < 16; ++i) {
    waiting.push_back(std::make_unique<Piece>(&harness, 1 + i / 4));
    EXPECT_FALSE(waiting.back()->had_its_turn()) << i;
    if (i == 3) {
      ExpectFull(&harness, 1, CallerFullError(QueueUnit::kCalls, 4, 1, 4));
    }
  }
  const absl::Status all = QueueFullError(QueueUnit::kCalls, 16, 1, 16);
  ExpectFull(&harness, 9, all);
  waiting[5]->Cancel();  // keeps its place until its turn
  ExpectFull(&harness, 9, all);
  first.Release();
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(waiting[i]->Reason(), i == 5 ? "CANCELLED_IN_QUEUE" : "OK");
  }
  EXPECT_EQ(Piece(&harness, 9).Reason(), "OK");
}

TEST(SideLaneTest, WhatIsPastItsDeadlineIsNotWorkedOn) {
  PipelineHarness harness;
  Piece first(&harness, 1, true);
  EXPECT_EQ(first.Reason(), "OK");
  const absl::Time deadline = SteadyNow() + absl::Milliseconds(1);
  Piece late(&harness, 1, true, deadline);
  while (SteadyNow() < deadline) absl::SleepFor(absl::Milliseconds(1));
  first.Release();
  EXPECT_EQ(late.Status(), ExpiredError());
}

TEST(SideLaneTest, WhatWaitedTooLongIsNotWorkedOn) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    PipelineHarness::Settings settings;
    settings.options.max_queue_time = time;
    PipelineHarness harness(settings);
    Piece first(&harness, 1, true);
    if (first.Reason() != "OK") return false;
    Piece late(&harness);
    absl::SleepFor(2 * time);
    first.Release();
    EXPECT_EQ(late.Status(), ExpiredError(time));
    return true;
  }));
}

TEST(SideLaneTest, DrainingRefusesNewWorkAndFinishesWhatWaits) {
  PipelineHarness harness;
  Piece first(&harness, 1, true);
  EXPECT_EQ(first.Reason(), "OK");
  Piece second(&harness);
  harness.pipeline->StartDraining();
  Piece late(&harness);
  ASSERT_TRUE(late.had_its_turn());
  EXPECT_EQ(late.Reason(), "DRAINING");
  EXPECT_EQ(harness.pipeline->in_flight(), 2);
  first.Release();
  EXPECT_EQ(second.Reason(), "OK");
  EXPECT_TRUE(harness.pipeline->WaitIdle(absl::InfiniteFuture()));
}

TEST(SideLaneTest, WorkThatThrowsEndsNothingElse) {
  PipelineHarness harness;
  harness.pipeline->SubmitWork(
      1, absl::InfiniteFuture(),
      [](const absl::Status&) { throw std::runtime_error("told to throw"); });
  EXPECT_EQ(Piece(&harness).Reason(), "OK");
}

TEST(SideLaneTest, RefusedWorkThatThrowsIsOver) {
  PipelineHarness harness;
  harness.pipeline->StartDraining();
  harness.pipeline->SubmitWork(
      1, absl::InfiniteFuture(),
      [](const absl::Status&) { throw std::runtime_error("told to throw"); });
  EXPECT_EQ(harness.pipeline->in_flight(), 0);
}

}  // namespace
}  // namespace encoderd
