// What the pipeline itself costs: texts per second through tokenizer pool,
// admission, queue and joiner with a device that computes nothing (zeros) and a
// tokenizer that copies bytes. Prints one JSON object.
//   pipeline_bench [texts per call] [calls in flight] [Sessions] [threads] [H]
// Threads: of the tokenizer pool. Defaults: 64 8 2 2 384; a text has 20 tokens,
// and none repeats within thousands.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "server/pipeline/pipeline.h"
#include "tests/support/fake_session.h"
#include "tests/support/fake_tokenizer.h"

namespace encoderd {
namespace {

constexpr int kTextBytes = 18;  // and two special tokens
constexpr int64_t kDistinct = 10000;
constexpr int kRepeats = 5;
constexpr int64_t kTexts = 1 << 20;  // each repeat

class NoObserver final : public PipelineObserver {
 public:
  void StageDuration(Stage stage, absl::Duration duration) override {}
  void InputTokens(int64_t tokens) override {}
  void BatchComputed(int64_t tokens, int64_t sequences,
                     int64_t duplicate_tokens) override {}
  void QueueChanged(int64_t sequences, int64_t tokens) override {}
  void Cancelled(Stage stage, int64_t sequences) override {}
  void DeviceFault(bool lost, const absl::Status& status) override {}
};

// Keeps `in_flight` calls in flight until all are answered; texts per second.
double Measure(Pipeline* pipeline, int64_t texts_per_call, int in_flight) {
  const int64_t calls = std::max<int64_t>(kTexts / texts_per_call, 1);
  std::mutex mutex;
  std::condition_variable changed;
  int open = 0;
  int64_t failed = 0;
  const absl::Time start = absl::Now();
  for (int64_t i = 0; i < calls; ++i) {
    PipelineRequest request;
    request.inputs.reserve(texts_per_call);
    for (int64_t k = 0; k < texts_per_call; ++k) {
      const int64_t number = (i * texts_per_call + k) % kDistinct;
      request.inputs.push_back(TextInput{std::to_string(kDistinct + number) +
                                         std::string(kTextBytes - 5, 'x')});
    }
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return open < in_flight; });
      ++open;
    }
    pipeline->Submit(std::move(request), [&](auto result) {
      std::lock_guard<std::mutex> lock(mutex);
      failed += result.ok() ? 0 : 1;
      --open;
      changed.notify_one();
    });
  }
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return open == 0; });
  if (failed > 0) std::fprintf(stderr, "%ld calls failed\n", long{failed});
  return static_cast<double>(calls * texts_per_call) /
         absl::ToDoubleSeconds(absl::Now() - start);
}

int Main(int argc, char** argv) {
  const auto argument = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  const int texts_per_call = std::max(argument(1, 64), 1);
  const int in_flight = std::max(argument(2, 8), 1);
  const int sessions = std::max(argument(3, 2), 1);
  PipelineOptions options;
  options.tokenizer_threads = std::max(argument(4, 2), 1);
  const int hidden_size = std::max(argument(5, 384), 1);
  options.max_queue_tokens = 1 << 30;

  IdLimits limits;
  limits.token_rows = FakeTokenizer::kVocab;
  limits.segment_rows = 2;
  limits.position_rows = limits.max_len = 256;
  FakeTokenizer tokenizer;
  FakeDevice device(/*max_batch_tokens=*/512, hidden_size);
  device.SetLogging(false);
  device.SetHashing(false);
  NoObserver observer;
  const auto pipeline = std::make_unique<Pipeline>(
      &tokenizer, limits, device.NewSessions(sessions), options, &observer);
  Measure(pipeline.get(), texts_per_call, in_flight);  // warm
  std::vector<double> rates;
  for (int i = 0; i < kRepeats; ++i) {
    rates.push_back(Measure(pipeline.get(), texts_per_call, in_flight));
  }
  std::sort(rates.begin(), rates.end());
  std::printf(
      "{\"texts_per_call\": %d, \"in_flight\": %d, \"sessions\": %d, "
      "\"tokenizer_threads\": %d, \"hidden_size\": %d, \"texts_per_s\": %.0f, "
      "\"min\": %.0f, \"max\": %.0f}\n",
      texts_per_call, in_flight, sessions, options.tokenizer_threads,
      hidden_size, rates[kRepeats / 2], rates.front(), rates.back());
  return 0;
}

}  // namespace
}  // namespace encoderd

int main(int argc, char** argv) { return encoderd::Main(argc, argv); }
