// For how long callers pause that a full queue rejects.
#include <optional>

#include "server/pipeline/errors.h"
#include "server/pipeline/queue_pace.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

// A queue that takes a second or so to drain, between both ends of what a pause
// may be. The device tells its pace by a first batch of 10 tokens; then 960 of
// the queue's 1000 are taken, and 50 more are asked for.
void ExpectThePauseOfItsQueue(int sessions) {
  PipelineHarness::Settings settings;
  settings.sessions = sessions;
  settings.options.max_queue_tokens = 1000;
  std::optional<absl::Duration> pause;
  absl::Duration drain;
  // On a machine that stands still meanwhile, the device seems slower.
  EXPECT_TRUE(Eventually([&] {
    PipelineHarness harness(settings);
    harness.device.SetLatency(absl::Milliseconds(10), absl::ZeroDuration());
    EXPECT_TRUE(harness.Submit({"12345678"}).Get().ok());
    harness.device.SetLatency(absl::ZeroDuration(), absl::ZeroDuration());
    const auto computed = harness.observer.seen().durations.at(Stage::kCompute);
    EXPECT_EQ(computed.count, 1);
    drain = computed.sum * (960 / sessions) / 10;

    harness.device.CloseGate();
    auto fills = harness.Submit(EightBytes(96));
    EXPECT_TRUE(harness.device.WaitForBatchesAtGate(1));
    TokenSequence ids;
    ids.token_ids.assign(50, 5);
    PipelineRequest request;
    request.inputs = {ids};
    const absl::Status status = harness.Submit(request).Get().status();
    EXPECT_EQ(ReasonOf(status), "QUEUE_FULL");
    pause = GetRetryPause(status);
    harness.device.OpenGate();
    EXPECT_TRUE(fills.Get().ok());
    return drain < QueuePace::kLongestDrain;
  }));
  EXPECT_GT(drain, QueuePace::kShortestDrain);
  // The first pause of a server is half of it; it is sent in milliseconds.
  ASSERT_TRUE(pause.has_value());
  EXPECT_LE(*pause, drain / 2 + absl::Milliseconds(1));
  EXPECT_GE(*pause, drain / 2 - absl::Milliseconds(2));
}

TEST(PipelinePauseTest, LastsAsLongAsOneSessionNeedsForTheQueue) {
  ExpectThePauseOfItsQueue(1);
}

TEST(PipelinePauseTest, LastsHalfAsLongForTwoSessions) {
  ExpectThePauseOfItsQueue(2);
}

}  // namespace
}  // namespace encoderd
