// Small calls that Submit tokenizes on its own thread.
#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

constexpr int64_t kBytes = 1 << 10;

PipelineHarness::Settings AtOnce() {
  PipelineHarness::Settings settings;
  settings.options.at_once_bytes = kBytes;
  return settings;
}

// Tokenized, and no more.
PipelineRequest Ids(std::string text) {
  PipelineRequest request = TextRequest({std::move(text)});
  request.ids_only.emplace();
  return request;
}

TEST(PipelineAtOnceTest, ASmallCallIsTokenizedWithinSubmit) {
  PipelineHarness harness(AtOnce());
  for (int i = 0; i < 100; ++i) {
    auto pending = harness.Submit(Ids("abc"));
    ASSERT_TRUE(pending.answered());
    EXPECT_EQ(pending.Get()->encodings[0].token_ids.size(), 5u);
  }
  const auto computed = harness.Submit({"abc", "d"}).Get();
  ASSERT_TRUE(computed.ok()) << computed.status();
  EXPECT_EQ(computed->outputs[0].values, harness.Expected("abc"));
  EXPECT_EQ(computed->outputs[1].values, harness.Expected("d"));
}

TEST(PipelineAtOnceTest, AnErrorOfItIsAnsweredWithinSubmit) {
  PipelineHarness harness(AtOnce());
  auto too_long = harness.Submit({std::string(70, 'x')});
  ASSERT_TRUE(too_long.answered());
  EXPECT_EQ(ReasonOf(too_long.Get().status()), "INPUT_TOO_LONG");
  auto throwing = harness.Submit({"throw"});
  ASSERT_TRUE(throwing.answered());
  EXPECT_EQ(ReasonOf(throwing.Get().status()), "INTERNAL_FAULT");
  EXPECT_TRUE(harness.Submit({"after it"}).Get().ok());
}

TEST(PipelineAtOnceTest, ALargerCallGoesToAPoolThread) {
  PipelineHarness harness(AtOnce());
  harness.tokenizer.CloseGate();
  auto large = harness.Submit(Ids(std::string(kBytes, 'x')));  // returns
  EXPECT_TRUE(harness.tokenizer.WaitForTextsAtGate(1));
  harness.tokenizer.OpenGate();
  EXPECT_TRUE(large.Get().ok());
}

TEST(PipelineAtOnceTest, WhileThePoolIsBusySmallCallsWaitForItsThreads) {
  PipelineHarness harness(AtOnce());  // with one tokenizer thread
  harness.tokenizer.CloseGate(kBytes);
  auto large = harness.Submit(Ids(std::string(kBytes, 'x')));
  ASSERT_TRUE(harness.tokenizer.WaitForTextsAtGate(1));
  auto small = harness.Submit(Ids("abc"));
  EXPECT_FALSE(small.answered());
  harness.tokenizer.OpenGate();
  EXPECT_TRUE(small.Get().ok());
  EXPECT_TRUE(large.Get().ok());
}

// No more texts are tokenized at the same time than there are threads.
TEST(PipelineAtOnceTest, APoolThreadWaitsForASmallCallAndThenRuns) {
  PipelineHarness harness(AtOnce());  // with one tokenizer thread
  harness.tokenizer.CloseGate();
  PipelineHarness::Pending small;
  std::thread caller([&] { small = harness.Submit(Ids("abc")); });
  EXPECT_TRUE(harness.tokenizer.WaitForTextsAtGate(1));
  auto large = harness.Submit(Ids(std::string(kBytes, 'x')));
  auto another = harness.Submit(Ids("d"));  // behind it
  absl::SleepFor(absl::Milliseconds(20));   // time for what must not happen
  harness.tokenizer.OpenGate();
  caller.join();
  EXPECT_TRUE(small.Get().ok());
  EXPECT_TRUE(large.Get().ok());
  EXPECT_TRUE(another.Get().ok());
  EXPECT_EQ(harness.tokenizer.most_at_gate(), 1);
}

// So that threads of the RPC library remain which read further calls.
TEST(PipelineAtOnceTest, HalfOfTheTokenizersServePoolThreadsAlone) {
  PipelineHarness::Settings settings = AtOnce();
  settings.options.tokenizer_threads = 4;
  PipelineHarness harness(settings);
  harness.tokenizer.CloseGate();
  const auto submit = [&] { return harness.Submit(Ids("abc")); };
  auto first = std::async(std::launch::async, submit);
  auto second = std::async(std::launch::async, submit);
  EXPECT_TRUE(harness.tokenizer.WaitForTextsAtGate(2));
  auto third = std::async(std::launch::async, submit);
  EXPECT_EQ(third.wait_for(std::chrono::seconds(60)),
            std::future_status::ready);
  EXPECT_TRUE(harness.tokenizer.WaitForTextsAtGate(3));
  harness.tokenizer.OpenGate();
  for (auto* pending : {&first, &second, &third})
    EXPECT_TRUE(pending->get().Get().ok());
}

TEST(PipelineAtOnceTest, AFloodOfSmallCallsDoesNotKeepALargerOneWaiting) {
  PipelineHarness harness(AtOnce());  // with one tokenizer thread
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      while (!stop) EXPECT_TRUE(harness.Submit(Ids("abc")).Get().ok());
    });
  }
  for (int i = 0; i < 100; ++i) {
    auto large = harness.Submit(Ids(std::string(kBytes, 'x')));
    EXPECT_EQ(large.answer.wait_for(std::chrono::seconds(60)),
              std::future_status::ready);
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace encoderd
