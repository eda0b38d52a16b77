// A PipelineObserver that adds up what it is told. Thread-safe.
#ifndef ENCODERD_TESTS_UNIT_SERVER_PIPELINE_RECORDING_OBSERVER_H_
#define ENCODERD_TESTS_UNIT_SERVER_PIPELINE_RECORDING_OBSERVER_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/pipeline/pipeline.h"

namespace encoderd {

class RecordingObserver : public PipelineObserver {
 public:
  struct Fault {
    bool lost;
    absl::Status status;
  };
  struct Durations {
    int count = 0;
    absl::Duration sum;
  };
  struct Seen {
    std::map<Stage, Durations> durations;
    std::map<Stage, int64_t> cancelled;
    int64_t input_tokens = 0;
    int64_t sequences = 0;
    int64_t batches = 0;
    int64_t batch_tokens = 0;
    int64_t duplicate_tokens = 0;
    int64_t queue_sequences = 0;  // the latest
    int64_t queue_tokens = 0;
    std::vector<Fault> faults;

    int64_t all_cancelled() const {
      int64_t all = 0;
      for (const auto& [stage, count] : cancelled) all += count;
      return all;
    }
  };

  Seen seen() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return seen_;
  }

  // The next report of a duration throws, once.
  void ThrowOnce() {
    std::lock_guard<std::mutex> lock(mutex_);
    throw_once_ = true;
  }

  void StageDuration(Stage stage, absl::Duration duration) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(throw_once_, false)) throw std::bad_alloc();
    Durations& durations = seen_.durations[stage];
    ++durations.count;
    durations.sum += duration;
  }
  void InputTokens(int64_t tokens) override {
    std::lock_guard<std::mutex> lock(mutex_);
    ++seen_.sequences;
    seen_.input_tokens += tokens;
  }
  void BatchComputed(int64_t tokens, int64_t sequences,
                     int64_t duplicate_tokens) override {
    std::lock_guard<std::mutex> lock(mutex_);
    ++seen_.batches;
    seen_.batch_tokens += tokens;
    seen_.duplicate_tokens += duplicate_tokens;
  }
  void QueueChanged(int64_t sequences, int64_t tokens) override {
    std::lock_guard<std::mutex> lock(mutex_);
    seen_.queue_sequences = sequences;
    seen_.queue_tokens = tokens;
  }
  void Cancelled(Stage stage, int64_t sequences) override {
    std::lock_guard<std::mutex> lock(mutex_);
    seen_.cancelled[stage] += sequences;
  }
  void DeviceFault(bool lost, const absl::Status& status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    seen_.faults.push_back({lost, status});
  }

 private:
  mutable std::mutex mutex_;
  bool throw_once_ = false;
  Seen seen_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_SERVER_PIPELINE_RECORDING_OBSERVER_H_
