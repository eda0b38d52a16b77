// What happens to requests that wait: full queue, cancel, deadline, fair share.
#include <string>
#include <utility>
#include <vector>

#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/queue_pace.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

PipelineRequest WithDeadline(PipelineRequest request, absl::Duration in) {
  request.deadline = SteadyNow() + in;
  return request;
}

TEST(PipelineQueueTest, RefusesFromWithinSubmitWhenTheQueueIsFull) {
  PipelineHarness::Settings settings;
  settings.options.max_queue_tokens = 100;
  PipelineHarness harness(settings);
  auto blocker = harness.Block();  // 7 tokens
  auto fills = harness.Submit({std::string(60, 'x')});
  harness.WaitForQueue(1);
  // Both the device and the tokenizer stand still: only Submit can answer.
  harness.tokenizer.CloseGate();
  TokenSequence ids;
  ids.token_ids.assign(40, 5);
  PipelineRequest request;
  request.inputs = {ids};
  auto refused = harness.Submit(request);
  ASSERT_TRUE(refused.answered());
  const absl::Status status = refused.Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "QUEUE_FULL");
  const auto detail = GetErrorDetail(status);
  EXPECT_EQ(detail->metadata.at("queued_tokens"), "69");
  EXPECT_EQ(detail->metadata.at("request_tokens"), "40");
  EXPECT_EQ(detail->metadata.at("limit"), "100");
  harness.tokenizer.OpenGate();
  harness.device.OpenGate();
  EXPECT_TRUE(blocker.Get().ok());
  EXPECT_TRUE(fills.Get().ok());
  EXPECT_TRUE(harness.Submit(request).Get().ok());  // there is room again
}

// Three tenths of a second for a token: the 69 that wait take 20 s.
TEST(PipelineQueueTest, TellsWhomItRejectsToPauseAsLongAsTheQueueNeeds) {
  PipelineHarness::Settings settings;
  settings.options.max_queue_tokens = 100;
  PipelineHarness harness(settings);
  harness.device.SetLatency(absl::Milliseconds(900), absl::ZeroDuration());
  EXPECT_TRUE(harness.Submit({"x"}).Get().ok());
  auto blocker = harness.Block();
  auto fills = harness.Submit({std::string(60, 'x')});
  harness.WaitForQueue(1);
  const absl::Status status =
      harness.Submit({std::string(60, 'x')}).Get().status();
  EXPECT_EQ(ReasonOf(status), "QUEUE_FULL");
  const auto pause = GetRetryPause(status);
  ASSERT_TRUE(pause.has_value());
  EXPECT_GE(*pause, QueuePace::kLongestDrain / 2);
  EXPECT_LE(*pause, QueuePace::kLongestDrain);
  harness.device.SetLatency(absl::ZeroDuration(), absl::ZeroDuration());
  harness.device.OpenGate();
  EXPECT_TRUE(fills.Get().ok());
}

TEST(PipelineQueueTest, RefusesARequestLargerThanTheWholeQueue) {
  PipelineHarness::Settings settings;
  settings.options.max_queue_tokens = 100;
  settings.options.max_queue_bytes = 10000;
  PipelineHarness harness(settings);
  const auto tokens =
      harness.Submit(std::vector<std::string>(3, std::string(40, 'x'))).Get();
  EXPECT_EQ(ReasonOf(tokens.status()), "REQUEST_TOO_LARGE");
  EXPECT_EQ(tokens.status().message(),
            "the request has 126 tokens; the queue (--max_queue_tokens) holds "
            "at most 100: send fewer inputs per request, or split a long text");
  EXPECT_EQ(GetErrorDetail(tokens.status())->metadata.at("request_tokens"),
            "126");
  const auto bytes = harness.Submit({std::string(20000, 'x')}).Get();
  EXPECT_EQ(ReasonOf(bytes.status()), "REQUEST_TOO_LARGE");
}

TEST(PipelineQueueTest, BoundsTheBytesThatWaitForTheTokenizer) {
  PipelineHarness::Settings settings;
  settings.options.max_queue_bytes = 10000;
  PipelineHarness harness(settings);
  harness.tokenizer.CloseGate();
  PipelineRequest request = TextRequest({std::string(9000, 'x')});
  request.truncate = TruncateMode::kEnd;
  auto waiting = harness.Submit(request);
  auto refused = harness.Submit({std::string(2000, 'x')});
  ASSERT_TRUE(refused.answered());
  EXPECT_EQ(ReasonOf(refused.Get().status()), "QUEUE_FULL");
  harness.tokenizer.OpenGate();
  EXPECT_TRUE(waiting.Get().ok());
}

TEST(PipelineQueueTest, ACallOfManyTextsReachesEveryThread) {
  PipelineHarness::Settings settings;
  settings.sessions = 6;
  PipelineHarness harness(settings);
  for (int round = 0; round < 5; ++round) {
    absl::SleepFor(absl::Milliseconds(20));  // by now the threads sleep
    harness.device.CloseGate();
    // Each thread gets one text.
    auto pending =
        harness.Submit(std::vector<std::string>(6, std::string(60, 'x')));
    EXPECT_TRUE(harness.device.WaitForBatchesAtGate(6));
    harness.device.OpenGate();
    EXPECT_TRUE(pending.Get().ok());
  }
}

TEST(PipelineQueueTest, ACancelledRequestIsNeverComputed) {
  PipelineHarness harness;
  auto blocker = harness.Block();
  auto cancelled = harness.Submit({"zz", "zzz"});
  auto stays = harness.Submit({"a"});
  harness.WaitForQueue(3);
  cancelled.call->Cancel();
  cancelled.call->Cancel();
  EXPECT_EQ(harness.observer.seen().queue_sequences, 1);  // left at once
  harness.device.OpenGate();
  const absl::Status status = cancelled.Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ReasonOf(status), "CANCELLED_IN_QUEUE");
  EXPECT_TRUE(stays.Get().ok());
  EXPECT_FALSE(harness.device.SawToken(FakeTokenizer::Id('z')));
  EXPECT_EQ(harness.observer.seen().cancelled.at(Stage::kQueue), 2);
  cancelled.call->Cancel();  // too late is fine
}

TEST(PipelineQueueTest, ARequestWithoutADeadlineWaitsNoLongerThanItMay) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    PipelineHarness::Settings settings;
    settings.options.max_queue_time = time;
    PipelineHarness harness(settings);
    harness.device.CloseGate();
    auto blocker = harness.Submit({"block"});
    const bool begun = harness.ReachesGate(blocker);
    auto waiting = harness.Submit({"zz"});
    absl::SleepFor(time + absl::Milliseconds(10));
    harness.device.OpenGate();
    if (!begun) return false;
    EXPECT_EQ(waiting.Get().status(), ExpiredError(time));
    EXPECT_FALSE(harness.device.SawToken(FakeTokenizer::Id('z')));
    return true;
  }));
}

// Its compute is no wait: no retry would be faster. Its own deadline still
// counts.
TEST(PipelineQueueTest, OnlyTheWaitForTheFirstBatchIsLimited) {
  for (const bool has_deadline : {false, true}) {
    EXPECT_TRUE(GivenEnoughTime([&](absl::Duration time) {
      PipelineHarness::Settings settings;
      settings.options.max_queue_time = time;
      PipelineHarness harness(settings);
      harness.device.CloseGate();
      PipelineRequest request = TextRequest(EightBytes(50));
      if (has_deadline) request = WithDeadline(std::move(request), 2 * time);
      const absl::Time expires = SteadyNow() + (has_deadline ? 2 : 1) * time;
      auto pending = harness.Submit(std::move(request));
      const bool begun = harness.ReachesGate(pending);
      while (SteadyNow() < expires) absl::SleepFor(absl::Milliseconds(1));
      harness.device.OpenGate();
      const absl::Status status = pending.Get().status();
      if (!begun) return false;
      EXPECT_EQ(status, has_deadline ? ExpiredError() : absl::OkStatus());
      EXPECT_EQ(harness.device.rows_computed() == 50, !has_deadline);
      return true;
    }));
  }
}

TEST(PipelineQueueTest, ADeadlineBeforeTheLimitIsTheOneThatIsNamed) {
  PipelineHarness::Settings settings;
  settings.options.max_queue_time = absl::Hours(1);
  PipelineHarness harness(settings);
  auto blocker = harness.Block();
  auto waiting =
      harness.Submit(WithDeadline(TextRequest({"zz"}), absl::Milliseconds(50)));
  absl::SleepFor(absl::Milliseconds(60));
  harness.device.OpenGate();
  EXPECT_EQ(waiting.Get().status(), ExpiredError());
}

TEST(PipelineQueueTest, CancellingWhileASliceIsComputedDropsTheOthers) {
  PipelineHarness harness;
  harness.device.CloseGate();
  auto pending = harness.Submit(EightBytes(50));
  ASSERT_TRUE(harness.device.WaitForBatchesAtGate(1));
  const int64_t waiting = harness.observer.seen().queue_sequences;
  ASSERT_GT(waiting, 0);
  pending.call->Cancel();
  harness.device.OpenGate();
  EXPECT_EQ(ReasonOf(pending.Get().status()), "CANCELLED_IN_QUEUE");
  EXPECT_EQ(harness.device.rows_computed(), 50 - waiting);
  const auto seen = harness.observer.seen();
  EXPECT_EQ(seen.cancelled.at(Stage::kQueue), waiting);
  EXPECT_EQ(seen.cancelled.at(Stage::kCompute), 50 - waiting);
}

TEST(PipelineQueueTest, CancellingWhileTokenizingStopsThere) {
  PipelineHarness harness;
  harness.tokenizer.CloseGate();
  auto pending = harness.Submit({"one", "two", "three"});
  ASSERT_TRUE(harness.tokenizer.WaitForTextsAtGate(1));
  pending.call->Cancel();
  harness.tokenizer.OpenGate();
  EXPECT_EQ(ReasonOf(pending.Get().status()), "CANCELLED_IN_QUEUE");
  EXPECT_EQ(harness.device.rows_computed(), 0);
  EXPECT_EQ(harness.observer.seen().cancelled.at(Stage::kTokenize), 3);
}

TEST(PipelineQueueTest, AHandleMayOutliveThePipeline) {
  std::shared_ptr<PipelineCall> call;
  {
    PipelineHarness harness;
    auto pending = harness.Submit({"a"});
    call = pending.call;
    EXPECT_TRUE(pending.Get().ok());
  }
  call->Cancel();
}

TEST(PipelineQueueTest, WhatExpiresInTheQueueIsNeverComputed) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    PipelineHarness harness;
    auto blocker = harness.Block();
    PipelineRequest request = WithDeadline(TextRequest({"zz", "z"}), time);
    const absl::Time deadline = request.deadline;
    auto expiring = harness.Submit(std::move(request));
    bool queued = false;  // else it expired before
    EXPECT_TRUE(Eventually([&] {
      queued = harness.observer.seen().queue_sequences == 2;
      return queued || expiring.answered();
    }));
    while (SteadyNow() < deadline) absl::SleepFor(absl::Milliseconds(1));
    harness.device.OpenGate();
    const absl::Status status = expiring.Get().status();
    EXPECT_EQ(status, ExpiredError());
    EXPECT_FALSE(harness.device.SawToken(FakeTokenizer::Id('z')));
    if (queued) {
      EXPECT_EQ(harness.observer.seen().cancelled.at(Stage::kQueue), 2);
    }
    return queued;
  }));
}

TEST(PipelineQueueTest, AnExpiredRequestIsRefusedFromWithinSubmit) {
  PipelineHarness harness;
  auto late =
      harness.Submit(WithDeadline(TextRequest({"a"}), -absl::Seconds(1)));
  ASSERT_TRUE(late.answered());
  EXPECT_EQ(ReasonOf(late.Get().status()), "EXPIRED_IN_QUEUE");
}

TEST(PipelineQueueTest, ADeadlineThatHoldsChangesNothing) {
  PipelineHarness harness;
  EXPECT_TRUE(harness.Submit(WithDeadline(TextRequest({"a"}), absl::Hours(1)))
                  .Get()
                  .ok());
}

TEST(PipelineQueueTest, AFloodingCallerDelaysAnotherByOneBatchOnly) {
  PipelineHarness harness;  // 128 tokens per batch
  auto blocker = harness.Block();
  std::vector<PipelineHarness::Pending> flood;
  for (int i = 0; i < 100; ++i) {
    PipelineRequest request =
        TextRequest(std::vector<std::string>(100, "ffffff"));
    request.caller.id = 1;
    flood.push_back(harness.Submit(request));
  }
  harness.WaitForQueue(10000);
  PipelineRequest request = TextRequest({"g"});
  request.caller.id = 2;
  auto other = harness.Submit(request);
  harness.WaitForQueue(10001);
  harness.device.OpenGate();
  EXPECT_TRUE(other.Get().ok());
  for (auto& pending : flood) EXPECT_TRUE(pending.Get().ok());
  const auto log = harness.device.log();
  size_t at = 0;
  while (at < log.size()) {
    bool found = false;
    for (const auto& row : log[at].rows) {
      found |= row.token_ids[1] == FakeTokenizer::Id('g');
    }
    if (found) break;
    ++at;
  }
  EXPECT_LE(at, 1u);  // 0 is the blocker's batch
}

TEST(PipelineQueueTest, HugeTextsDoNotHoldUpShortOnes) {
  PipelineHarness::Settings settings;
  settings.options.tokenizer_threads = 2;
  PipelineHarness harness(settings);
  harness.tokenizer.CloseGate(/*min_bytes=*/100000);
  auto huge =
      harness.Submit({std::string(200000, 'x'), std::string(200000, 'x'),
                      std::string(200000, 'x')});
  ASSERT_TRUE(harness.tokenizer.WaitForTextsAtGate(1));
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(harness.Submit({"short", "texts"}).Get().ok());
  }
  EXPECT_FALSE(huge.answered());
  harness.tokenizer.OpenGate();
  EXPECT_EQ(ReasonOf(huge.Get().status()), "INPUT_TOO_LONG");
}

PipelineHarness::Settings WithSmall(int64_t tokens) {
  PipelineHarness::Settings settings;
  settings.max_batch_tokens = 64;
  settings.small_tokens = tokens;
  return settings;
}

TEST(PipelineQueueTest, IdleCoresShareABatchOfSeveralTexts) {
  PipelineHarness::Settings settings = WithSmall(16);
  settings.sessions = 2;
  PipelineHarness harness(settings);
  EXPECT_TRUE(harness.Submit(EightBytes(4)).Get().ok());  // 40 tokens
  EXPECT_EQ(harness.device.log_size(), 1);
}

TEST(PipelineQueueTest, ASmallRequestIsComputedInTheMiddleOfABatch) {
  PipelineHarness harness(WithSmall(16));
  harness.device.CloseGate();
  auto in_flight = harness.Submit({std::string(40, 'x')});
  ASSERT_TRUE(harness.device.WaitForBatchesAtGate(1));
  auto waits =
      harness.Submit(std::vector<std::string>(9, std::string(40, 'y')));
  auto small = harness.Submit({"abc"});
  harness.WaitForQueue(10);
  harness.in_pauses.CloseGate();
  harness.device.LetThrough(1);
  // It is at the other session while the batch is still in flight.
  ASSERT_TRUE(harness.in_pauses.WaitForBatchesAtGate(1));
  EXPECT_FALSE(in_flight.answered());
  harness.in_pauses.OpenGate();
  const auto answer = small.Get();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->outputs[0].values, harness.Expected("abc"));
  harness.device.OpenGate();
  EXPECT_TRUE(in_flight.Get().ok());
  EXPECT_TRUE(waits.Get().ok());
  EXPECT_EQ(harness.in_pauses.rows_computed(), 1);
}

TEST(PipelineQueueTest, WhatFailsInAPauseFailsAlone) {
  PipelineHarness harness(WithSmall(16));
  harness.in_pauses.ThrowOnToken(FakeTokenizer::Id('z'));
  harness.device.CloseGate();
  auto in_flight = harness.Submit({std::string(40, 'x')});
  ASSERT_TRUE(harness.device.WaitForBatchesAtGate(1));
  auto good = harness.Submit({"abc"});
  auto bad = harness.Submit({"z"});
  harness.WaitForQueue(2);
  harness.device.OpenGate();
  EXPECT_EQ(ReasonOf(bad.Get().status()), "DEVICE_FAULT");
  EXPECT_TRUE(good.Get().ok());
  EXPECT_TRUE(in_flight.Get().ok());
}

// A pause is offered after every batch, and small requests always wait.
TEST(PipelineQueueTest, ManySmallRequestsLeaveHalfOfTheTimeToALongOne) {
  // With time, a thread that stands still takes less of it.
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    PipelineHarness harness(WithSmall(16));
    harness.device.SetLatency(time / 125, absl::ZeroDuration());
    harness.in_pauses.SetLatency(time / 125, absl::ZeroDuration());
    auto blocker = harness.Block();
    std::vector<PipelineHarness::Pending> pending;
    PipelineRequest small = TextRequest({"abcdefghijkl"});
    small.caller.id = 1;
    for (int i = 0; i < 200; ++i) pending.push_back(harness.Submit(small));
    auto request =
        TextRequest(std::vector<std::string>(20, std::string(40, 'y')));
    request.caller.id = 2;
    auto longer = harness.Submit(std::move(request));
    harness.WaitForQueue(220);
    harness.device.OpenGate();
    EXPECT_TRUE(longer.Get().ok());
    EXPECT_TRUE(blocker.Get().ok());
    for (auto& one : pending) EXPECT_TRUE(one.Get().ok());
    // It did not wait for the small ones, of which most were left.
    return *longer.place < 100;
  }));
}

}  // namespace
}  // namespace encoderd
