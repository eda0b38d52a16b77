// Threads, cancels, deadlines and faults at random against a real pipeline; run
// under ThreadSanitizer too. 10,000 requests.
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/base/steady_time.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

constexpr int kSessions = 2;
constexpr int kThreads = 4;
constexpr int kRequestsPerThread = 2500;
constexpr int32_t kFirstMark = FakeTokenizer::kVocab;  // one token a request

struct Sent {
  PipelineHarness::Pending pending;
  std::vector<std::string> texts;  // "" is the marked id list
  int32_t mark = 0;
  bool cancelled = false;
  size_t log_at_cancel = 0;
};

class StressTest : public ::testing::Test {
 protected:
  static PipelineHarness::Settings MakeSettings() {
    PipelineHarness::Settings settings;
    settings.sessions = kSessions;
    settings.limits.token_rows = kFirstMark + kThreads * kRequestsPerThread;
    settings.options.tokenizer_threads = 3;
    settings.options.at_once_bytes = PipelineOptions().at_once_bytes;
    settings.options.max_queue_tokens = 20000;
    return settings;
  }

  TokenSequence MarkedIds(int32_t mark) const {
    TokenSequence ids;
    ids.token_ids = {FakeTokenizer::kCls, mark, FakeTokenizer::kSep};
    return ids;
  }

  void Load(int thread);
  void Check(Sent* sent);

  PipelineHarness harness_{MakeSettings()};
  std::atomic<int64_t> ok_{0}, cancelled_{0}, expired_{0}, faults_{0}, full_{0};
};

void StressTest::Load(int thread) {
  std::mt19937 random(thread);
  std::vector<Sent> window;
  for (int i = 0; i < kRequestsPerThread; ++i) {
    Sent sent;
    sent.mark = kFirstMark + thread * kRequestsPerThread + i;
    PipelineRequest request;
    request.caller.id = thread;
    const int inputs = 1 + static_cast<int>(random() % 12);
    for (int k = 0; k < inputs; ++k) {
      if (k % 3 == 0) {
        request.inputs.push_back(MarkedIds(sent.mark));
        sent.texts.push_back("");
      } else {
        sent.texts.push_back(std::string(1 + random() % 30, 'a' + k));
        request.inputs.push_back(TextInput{sent.texts.back()});
      }
    }
    if (random() % 50 == 0) {  // poisonous or not a number
      sent.texts.push_back(random() % 2 == 0 ? "!" : "?");
      request.inputs.push_back(TextInput{sent.texts.back()});
    }
    if (random() % 8 == 0) {
      request.deadline = SteadyNow() + absl::Microseconds(random() % 3000);
    }
    sent.pending = harness_.Submit(std::move(request));
    window.push_back(std::move(sent));
    if (random() % 4 == 0) {
      Sent& victim = window[random() % window.size()];
      victim.pending.call->Cancel();
      if (!victim.cancelled) {
        victim.cancelled = true;
        victim.log_at_cancel = harness_.device.log_size();
      }
    }
    if (window.size() >= 100) {
      for (Sent& done : window) Check(&done);
      window.clear();
    }
  }
  for (Sent& done : window) Check(&done);
}

void StressTest::Check(Sent* sent) {
  const auto result = sent->pending.Get();
  const std::string reason = result.ok() ? "" : ReasonOf(result.status());
  if (sent->cancelled) {
    // At most the batch that each Session was busy with still had its rows.
    EXPECT_LE(harness_.device.BatchesWithToken(sent->mark, sent->log_at_cancel),
              kSessions);
  }
  if (result.ok()) {
    ++ok_;
    ASSERT_EQ(result->outputs.size(), sent->texts.size());
    for (size_t i = 0; i < sent->texts.size(); ++i) {
      const std::string& text = sent->texts[i];
      EXPECT_EQ(result->outputs[i].values,
                text.empty() ? harness_.device.Expected(MarkedIds(sent->mark),
                                                        harness_.limits, {})
                             : harness_.Expected(text));
    }
  } else if (reason == "CANCELLED_IN_QUEUE") {
    ++cancelled_;
    EXPECT_TRUE(sent->cancelled);
  } else if (reason == "EXPIRED_IN_QUEUE") {
    ++expired_;
  } else if (reason == "DEVICE_FAULT") {
    ++faults_;
    EXPECT_TRUE(sent->texts.back() == "!" || sent->texts.back() == "?");
  } else {
    EXPECT_EQ(reason, "QUEUE_FULL");
    ++full_;
  }
}

TEST_F(StressTest, EveryRequestIsAnsweredOnceAndRightlyWhateverHappens) {
  harness_.device.SetLatency(absl::Microseconds(50), absl::ZeroDuration());
  harness_.device.PoisonToken(FakeTokenizer::Id('!'));
  harness_.device.NanToken(FakeTokenizer::Id('?'));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] { Load(t); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ok_ + cancelled_ + expired_ + faults_ + full_,
            kThreads * kRequestsPerThread);
  EXPECT_GT(ok_.load(), 0);
  EXPECT_GT(cancelled_.load(), 0);
  EXPECT_GT(expired_.load(), 0);
  EXPECT_GT(faults_.load(), 0);
  EXPECT_TRUE(harness_.pipeline->WaitIdle(absl::InfiniteFuture()));
}

TEST_F(StressTest, DrainingUnderLoadAnswersEverything) {
  harness_.device.SetLatency(absl::Microseconds(100), absl::ZeroDuration());
  std::vector<std::thread> threads;
  std::atomic<int64_t> refused{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, &refused] {
      while (true) {
        const auto result = harness_.Submit({"a", "b"}).Get();
        if (result.ok()) continue;
        EXPECT_EQ(ReasonOf(result.status()), "DRAINING");
        ++refused;
        return;
      }
    });
  }
  absl::SleepFor(absl::Milliseconds(5));
  harness_.pipeline->StartDraining();
  EXPECT_TRUE(harness_.pipeline->WaitIdle(absl::InfiniteFuture()));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused.load(), kThreads);
}

TEST_F(StressTest, LosingTheDeviceUnderLoadAnswersEverything) {
  harness_.device.SetLatency(absl::Microseconds(100), absl::ZeroDuration());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      std::vector<PipelineHarness::Pending> window;
      for (int i = 0; i < 200; ++i) {
        window.push_back(harness_.Submit({"some", "texts"}));
        if (t == 0 && i == 50) harness_.device.Lose();
      }
      for (auto& pending : window) pending.Get().status().IgnoreError();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(harness_.Submit({"a"}).Get().status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace encoderd
