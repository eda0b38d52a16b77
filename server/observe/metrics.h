// The metrics of calls and models: one table (metrics.cc) has names, help,
// labels and buckets. Metrics also holds those of the whole server, whose
// table is in server_metrics.cc. Handles are resolved at construction, so that
// all series exist, at zero, from the first scrape and the hot path only
// observes. Values that exist elsewhere (the fill of a queue, connections) are
// not stored here: a scrape samples them first. Thread-safe.
#ifndef ENCODERD_SERVER_OBSERVE_METRICS_H_
#define ENCODERD_SERVER_OBSERVE_METRICS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/observe/labels.h"
#include "server/observe/server_metrics.h"
#include "server/pipeline/request.h"

namespace encoderd {

// Calls of one model, or of none. Thread-safe.
class ModelCalls {
 public:
  // A call, or an input within a call that succeeded.
  void Rejected(absl::string_view reason);

 private:
  friend class Metrics;
  friend class MethodMetrics;

  size_t index_ = 0;  // 0: none
  // Owned by the registry, like all handles.
  std::map<std::string, prometheus::Counter*, std::less<>> rejections_;
};

// What is counted per model. Thread-safe.
class ModelMetrics : public ModelCalls {
 public:
  void StageDuration(Stage stage, absl::Duration duration);
  void Batch(int64_t tokens, int64_t sequences, int64_t duplicate_tokens);
  void InputTokens(int64_t tokens);
  void Queue(int64_t sequences, int64_t tokens);
  void Cancelled(Stage stage, int64_t sequences);
  void Sample(const PipelineFigures& figures);  // before Metrics::Text

 private:
  friend class Metrics;

  prometheus::Histogram* batch_tokens_;
  prometheus::Histogram* batch_sequences_;
  prometheus::Histogram* input_tokens_;
  prometheus::Counter* tokens_;
  prometheus::Counter* duplicate_tokens_;
  prometheus::Gauge* queue_inputs_;
  prometheus::Gauge* queue_tokens_;
  prometheus::Gauge* admitted_tokens_;
  prometheus::Gauge* admitted_tokens_limit_;
  prometheus::Gauge* admitted_bytes_;
  prometheus::Gauge* admitted_bytes_limit_;
  prometheus::Gauge* compute_threads_;
  prometheus::Gauge* compute_threads_busy_;
  prometheus::Gauge* oldest_batch_age_;
  prometheus::Gauge* max_batch_tokens_;
  std::array<prometheus::Histogram*, kNumStages> stage_duration_;
  std::array<prometheus::Counter*, kNumStages> cancelled_;
};

// What is counted of an answer, besides how long it took.
struct AnswerStatus {
  absl::StatusCode code = absl::StatusCode::kOk;
  // Of a call that is not OK; empty: it is no rejection.
  std::string reason;
  // RESOURCE_EXHAUSTED by a limit of the caller's token, while the server has
  // room for others.
  bool own_limit = false;
};

// What is counted per method. Thread-safe.
class MethodMetrics {
 public:
  const std::string& name() const { return name_; }
  // A call is in flight from Entered to Left.
  void Entered() { in_flight_->Increment(); }
  void Left() { in_flight_->Decrement(); }
  // One answered call; of a stream, one answered request. `model` took it.
  void Answered(ModelCalls* model, const AnswerStatus& status,
                absl::Duration duration);

 private:
  friend class Metrics;

  struct Ending {
    prometheus::Counter* requests = nullptr;
    prometheus::Histogram* duration = nullptr;
  };
  // One for each code; the last: an own limit.
  using Endings = std::array<Ending, kAnswerCodes.size() + 1>;

  std::string name_;
  prometheus::Gauge* in_flight_;
  std::vector<Endings> endings_;  // by ModelCalls::index_
};

// A method of the contract.
struct ServedMethod {
  std::string name;
  bool names_model = true;   // its request has a field `model`
  bool takes_inputs = true;  // and `inputs`
  bool streams = false;      // many requests over one call, itself limited
};

class Metrics {
 public:
  // The names of the models that will be served, and the methods. revision: the
  // commit of the sources.
  Metrics(const std::vector<std::string>& models,
          const std::vector<ServedMethod>& methods,
          const std::string& revision);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // For a method or model named at construction; valid as long as this. Another
  // name is a bug and ends the process: call it at start.
  MethodMetrics* ForMethod(absl::string_view method);
  ModelMetrics* ForModel(absl::string_view model);
  // For calls that name no model or an unknown one, or that were rejected
  // before they were read.
  ModelCalls* NoModel() { return &no_model_; }

  // The served model: replaces the series for "not loaded yet".
  void SetModel(const std::map<std::string, std::string>& labels);

  // To be sampled before Text.
  ServerMetrics& server() { return server_; }

  // The Prometheus text format, version 0.0.4. Throws std::bad_alloc.
  std::string Text() const;

 private:
  void AddRejections(const std::string& model, ModelCalls* to);
  void AddModel(const std::string& model, size_t index);
  void AddMethod(const ServedMethod& method,
                 const std::vector<std::string>& models);
  MethodMetrics::Endings AddEndings(const std::string& method,
                                    const std::string& model,
                                    absl::Span<const absl::StatusCode> codes);

  prometheus::Registry registry_;
  ServerMetrics server_;
  // Handles: constant after construction, owned by registry_.
  std::map<std::string, MethodMetrics, std::less<>> methods_;
  std::map<std::string, ModelMetrics, std::less<>> models_;
  ModelCalls no_model_;
  prometheus::Family<prometheus::Gauge>* model_info_;
  prometheus::Gauge* model_info_empty_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_METRICS_H_
