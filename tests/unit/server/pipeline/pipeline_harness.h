// A pipeline over fakes, and answers that tests can wait for.
//
// The harness's destructor checks the invariant of every test: each request was
// answered exactly once and the queue is empty.
#ifndef ENCODERD_TESTS_UNIT_SERVER_PIPELINE_PIPELINE_HARNESS_H_
#define ENCODERD_TESTS_UNIT_SERVER_PIPELINE_PIPELINE_HARNESS_H_

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/pipeline/pipeline.h"
#include "tests/support/fake_session.h"
#include "tests/support/fake_tokenizer.h"
#include "tests/support/patience.h"
#include "tests/unit/server/pipeline/recording_observer.h"

namespace encoderd {

inline IdLimits FakeLimits() {
  IdLimits limits;
  limits.token_rows = FakeTokenizer::kVocab;
  limits.segment_rows = 2;
  limits.position_rows = 64;
  limits.max_len = 64;
  return limits;
}

inline std::string ReasonOf(const absl::Status& status) {
  const auto detail = GetErrorDetail(status);
  return detail ? detail->reason : "no ErrorDetail";
}

inline PipelineRequest TextRequest(std::vector<std::string> texts) {
  PipelineRequest request;
  for (std::string& text : texts) {
    request.inputs.push_back(TextInput{std::move(text)});
  }
  return request;
}

// Texts of eight bytes, no two alike.
inline std::vector<std::string> EightBytes(int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    texts.push_back(std::to_string(10000000 + i));
  }
  return texts;
}

// What the fake tokenizer makes of a text.
inline TokenSequence FakeIds(const std::string& text) {
  TokenSequence sequence;
  sequence.token_ids.push_back(FakeTokenizer::kCls);
  for (const char c : text) {
    sequence.token_ids.push_back(FakeTokenizer::Id(c));
  }
  sequence.token_ids.push_back(FakeTokenizer::kSep);
  return sequence;
}

// A call of texts as the fake tokenizer and FakeLimits leave it for the queue;
// the tokens of each sequence.
inline std::vector<int32_t> StartComputing(Call* call) {
  const FakeTokenizer tokenizer;
  const InputEncoder encoder(&tokenizer, FakeLimits());
  const auto scratch = tokenizer.NewScratch();
  Encoding buffer;
  for (int64_t i = 0; i < call->inputs.size(); ++i) {
    call->inputs.Tokenize(i, encoder, scratch.get(), &buffer);
  }
  return call->StartComputing(encoder);
}

class PipelineHarness {
 public:
  struct Settings {
    int sessions = 1;
    // The most tokens of a request that is computed in pauses; 0: none is.
    int64_t small_tokens = 0;
    int64_t max_batch_tokens = 128;
    int32_t hidden_size = 8;
    IdLimits limits = FakeLimits();
    PipelineOptions options;

    Settings() { options.at_once_bytes = 0; }  // by pool threads alone
  };
  using Result = absl::StatusOr<PipelineResult>;

  // An answer to come.
  struct Pending {
    std::shared_ptr<PipelineCall> call;
    std::future<Result> answer;
    // Once it is answered: how many were before it.
    std::shared_ptr<std::atomic<int64_t>> place;

    Result Get() { return answer.get(); }
    bool answered() const {
      return answer.wait_for(std::chrono::seconds(0)) ==
             std::future_status::ready;
    }
  };

  PipelineHarness() : PipelineHarness(Settings{}) {}
  explicit PipelineHarness(const Settings& settings)
      : limits(settings.limits),
        device(settings.max_batch_tokens, settings.hidden_size),
        in_pauses(settings.small_tokens, settings.hidden_size) {
    pipeline = std::make_unique<Pipeline>(
        &tokenizer, limits, device.NewSessions(settings.sessions),
        settings.options, &observer,
        in_pauses.NewSessions(settings.small_tokens > 0 ? settings.sessions
                                                        : 0));
  }
  ~PipelineHarness() {
    device.OpenGate();
    tokenizer.OpenGate();
    pipeline.reset();
    EXPECT_EQ(started.load(), finished.load());
    EXPECT_EQ(observer.seen().queue_sequences, 0);
    EXPECT_EQ(observer.seen().queue_tokens, 0);
  }

  Pending Submit(PipelineRequest request) {
    auto promise = std::make_shared<std::promise<Result>>();
    Pending pending;
    pending.answer = promise->get_future();
    pending.place = std::make_shared<std::atomic<int64_t>>();
    ++started;
    pending.call =
        pipeline->Submit(std::move(request),
                         [this, promise, place = pending.place](Result result) {
                           *place = finished++;
                           // Twice: `finished` is too large.
                           promise->set_value(std::move(result));
                         });
    return pending;
  }
  Pending Submit(std::vector<std::string> texts) {
    return Submit(TextRequest(std::move(texts)));
  }
  // The same for ids only; the answer is waited for.
  absl::StatusOr<std::vector<Encoding>> Tokenize(PipelineRequest request) {
    Result result = Submit(std::move(request)).Get();
    if (!result.ok()) return result.status();
    return std::move(result->encodings);
  }
  // One request that is at the device's closed gate, so that what follows
  // waits in the queue.
  Pending Block() {
    device.CloseGate();
    Pending pending = Submit({"block"});
    EXPECT_TRUE(device.WaitForBatchesAtGate(1));
    return pending;
  }
  // Waits until it is at the device's closed gate (true) or answered.
  bool ReachesGate(const Pending& pending) const {
    EXPECT_TRUE(Eventually(
        [&] { return pending.answered() || device.batches_at_gate() > 0; }));
    return !pending.answered();
  }
  // Waits until this many inputs are in the queue.
  void WaitForQueue(int64_t inputs) {
    EXPECT_TRUE(Eventually([&] {
      return observer.seen().queue_sequences == inputs;
    })) << observer.seen().queue_sequences
        << " inputs, not " << inputs;
  }
  std::vector<float> Expected(const std::string& text,
                              const SequenceOutput& output = {}) const {
    return device.Expected(FakeIds(text), limits, output);
  }

  const IdLimits limits;
  FakeTokenizer tokenizer;
  FakeDevice device;
  FakeDevice in_pauses;
  RecordingObserver observer;
  std::atomic<int64_t> started{0};
  std::atomic<int64_t> finished{0};
  std::unique_ptr<Pipeline> pipeline;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_SERVER_PIPELINE_PIPELINE_HARNESS_H_
