// Memory that runs out while a call is submitted or answers are collected: who
// fails, who does not.
#include <climits>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "server/pipeline/admission.h"
#include "tests/support/faults.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

constexpr int32_t kHidden = 4096;
constexpr size_t kLimit = 256 << 10;  // bytes; the states of 16 tokens

PipelineRequest States(std::vector<std::string> texts) {
  PipelineRequest request = TextRequest(std::move(texts));
  request.output.kind = SequenceOutput::Kind::kStates;
  request.answer.row_bytes = kHidden * sizeof(float);
  return request;
}

PipelineHarness::Settings Wide() {
  PipelineHarness::Settings settings;
  settings.hidden_size = kHidden;
  return settings;
}

TEST(PipelineMemoryTest, AnAnswerThatThereIsNoMemoryForFailsAlone) {
  PipelineHarness harness(Wide());
  const std::string large(60, 'a');  // 62 tokens: 992 KiB
  auto blocker = harness.Block();
  // What the session and the queue keep is theirs before memory runs out.
  auto first = harness.Submit(States({large, large}));
  harness.device.OpenGate();
  ASSERT_TRUE(first.Get().ok());
  ASSERT_TRUE(blocker.Get().ok());

  absl::Status failed;
  absl::StatusOr<PipelineResult> small;
  absl::StatusOr<PipelineResult> each;
  {
    const ScopedFault fault(
        FaultPoint::kAllocation,
        {.times = INT_MAX, .min_bytes = kLimit, .thread = Fault::kAnyThread});
    failed = harness.Submit(States({large})).Get().status();
    small = harness.Submit(States({"a"})).Get();
    PipelineRequest both = States({large, "b"});
    both.errors_per_input = true;
    each = harness.Submit(std::move(both)).Get();
  }

  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ReasonOf(failed), "INTERNAL_FAULT");
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->outputs[0].rows, 3);
  ASSERT_TRUE(each.ok()) << each.status();
  EXPECT_EQ(ReasonOf(each->outputs[0].status), "INTERNAL_FAULT");
  ASSERT_TRUE(each->outputs[1].status.ok());
  EXPECT_EQ(each->outputs[1].rows, 3);
  const auto after = harness.Submit(States({large})).Get();
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->outputs[0].rows, 62);
}

TEST(PipelineMemoryTest, ACallThatThereIsNoMemoryForDoesNotWait) {
  PipelineHarness harness;
  harness.tokenizer.CloseGate();
  auto blocker = harness.Submit({"block"});
  ASSERT_TRUE(harness.tokenizer.WaitForTextsAtGate(1));

  bool struck = true;
  for (int after = 0; struck; ++after) {
    SCOPED_TRACE(after);
    PipelineRequest request =
        TextRequest({"short", std::string(TokenizerPool::kLargeBytes, 'x')});
    request.caller.id = 1;
    request.ids_only.emplace();
    absl::Status answer;
    int answers = 0;
    std::shared_ptr<PipelineCall> call;
    {
      const ScopedFault fault(FaultPoint::kAllocation,
                              {.after = after, .may_miss = true});
      try {
        call = harness.pipeline->Submit(
            std::move(request),
            [&](const absl::StatusOr<PipelineResult>& result) {
              ++answers;
              answer = result.status();
            });
      } catch (const std::bad_alloc&) {  // there is no call
      }
      struck = fault.struck() > 0;
    }
    if (struck) {
      if (call == nullptr) continue;
      EXPECT_EQ(answers, 1);
      EXPECT_EQ(ReasonOf(answer), "INTERNAL_FAULT");
      EXPECT_EQ(call.use_count(), 1);  // none of its texts waits
      continue;
    }
    EXPECT_EQ(answers, 0);
    harness.tokenizer.OpenGate();
    harness.pipeline->WaitIdle(absl::InfiniteFuture());
    EXPECT_EQ(answers, 1);
    EXPECT_TRUE(answer.ok()) << answer;
  }
  EXPECT_TRUE(blocker.Get().ok());
}

TEST(AdmissionMemoryTest, WhatCannotBeAdmittedTakesNothing) {
  Admission admission(100, 100);
  Caller caller;
  caller.id = 7;
  caller.max_queue_tokens = 50;
  {
    const ScopedFault fault(FaultPoint::kAllocation, {});
    EXPECT_THROW(admission.Admit(10, false, 10, caller).IgnoreError(),
                 std::bad_alloc);
  }
  EXPECT_EQ(admission.tokens(), 0);
  EXPECT_EQ(admission.bytes(), 0);
  EXPECT_TRUE(admission.Admit(50, false, 100, caller).ok());
}

}  // namespace
}  // namespace encoderd
