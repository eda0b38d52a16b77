// Every metric of the server: names, help, labels and buckets stand in one
// table (metrics.cc). Handles are resolved at construction, so that all series
// exist, at zero, from the first scrape and the hot path only observes.
// Thread-safe.
#ifndef ENCODERD_SERVER_OBSERVE_METRICS_H_
#define ENCODERD_SERVER_OBSERVE_METRICS_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/pipeline/request.h"

namespace encoderd {

const char* StageName(Stage stage);  // "tokenize"

// The codes that a method of this server answers with, the values of the label
// `code`. Any other code counts as INTERNAL.
inline constexpr std::array<absl::StatusCode, 8> kAnswerCodes = {
    absl::StatusCode::kOk,          absl::StatusCode::kInvalidArgument,
    absl::StatusCode::kNotFound,    absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
    absl::StatusCode::kCancelled,   absl::StatusCode::kInternal};

// Every reason of ErrorReason, the values of the label `reason`. An unknown
// reason counts as INTERNAL_FAULT.
const std::vector<std::string>& RejectionReasons();

// What is counted of one model. Thread-safe.
class ModelMetrics {
 public:
  void Batch(int64_t tokens, int64_t sequences);
  void InputTokens(int64_t tokens);
  void Queue(int64_t sequences, int64_t tokens);
  void Cancelled(Stage stage, int64_t sequences);

 private:
  friend class Metrics;

  // Owned by the registry.
  prometheus::Histogram* batch_tokens_;
  prometheus::Histogram* batch_sequences_;
  prometheus::Histogram* input_tokens_;
  prometheus::Counter* tokens_;
  prometheus::Gauge* queue_inputs_;
  prometheus::Gauge* queue_tokens_;
  std::array<prometheus::Counter*, kNumStages> cancelled_;
};

class Metrics;

// What is counted of one method. Thread-safe.
class MethodMetrics {
 public:
  // One answered call. `reason`: of a call that was not OK.
  void Answered(absl::StatusCode code, absl::string_view reason,
                absl::Duration duration);

 private:
  friend class Metrics;

  Metrics* metrics_;
  // Owned by the registry.
  std::array<prometheus::Counter*, kAnswerCodes.size()> answers_;
};

class Metrics {
 public:
  // The names of the models that will be served, and of the methods that they
  // are asked by.
  Metrics(const std::vector<std::string>& models,
          const std::vector<std::string>& methods);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // An input that was refused within a call that was not.
  void InputRejected(absl::string_view reason);

  void StageDuration(Stage stage, absl::Duration duration);
  // Of a method, a model named at construction; live as long as this. Another
  // name is a bug and ends the process: ask at the start.
  MethodMetrics* ForMethod(absl::string_view method);
  ModelMetrics* ForModel(absl::string_view model);

  // What is served: replaces the series that stood for "not loaded yet".
  void SetModel(const std::map<std::string, std::string>& labels);

  // The Prometheus text format, version 0.0.4.
  std::string Text() const;

 private:
  friend class MethodMetrics;

  prometheus::Registry registry_;
  // Handles: constant after construction, owned by registry_.
  std::map<std::string, prometheus::Counter*, std::less<>> rejections_;
  prometheus::Histogram* request_duration_;
  std::array<prometheus::Histogram*, kNumStages> stage_duration_;
  std::map<std::string, MethodMetrics, std::less<>> methods_;
  std::map<std::string, ModelMetrics, std::less<>> models_;
  prometheus::Family<prometheus::Gauge>* model_info_;
  prometheus::Gauge* model_info_empty_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_METRICS_H_
