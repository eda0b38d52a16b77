#include "server/observe/metrics.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <iterator>

#include "prometheus/text_serializer.h"
#include "server/version.h"

namespace encoderd {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

struct Spec {
  const char* name;
  const char* help;
};

// The table. Histograms name their buckets where they are built, below.
constexpr Spec kRequests = {"encoderd_requests_total",
                            "Calls answered, by method and status code."};
constexpr Spec kRejections = {
    "encoderd_rejections_total",
    "Calls, and inputs of PER_INPUT, answered with an error, by its reason."};
constexpr Spec kRequestDuration = {
    "encoderd_request_duration_seconds",
    "From a call's arrival to the end of its answer, all methods."};
constexpr Spec kStageDuration = {
    "encoderd_stage_duration_seconds",
    "Time of one stage: tokenize, queue and reply of a call, batch and compute "
    "of a batch."};
constexpr Spec kBatchTokens = {"encoderd_batch_tokens",
                               "Tokens of a computed batch."};
constexpr Spec kBatchSequences = {"encoderd_batch_sequences",
                                  "Sequences of a computed batch: inputs, or "
                                  "each window of one."};
constexpr Spec kInputTokens = {
    "encoderd_input_tokens",
    "Tokens of an admitted sequence (an input, or each window of one), special "
    "tokens included."};
constexpr Spec kTokens = {"encoderd_tokens_total", "Tokens computed."};
constexpr Spec kQueueInputs = {"encoderd_queue_inputs",
                               "Sequences (inputs, or each window of one) "
                               "that wait for compute now."};
constexpr Spec kQueueTokens = {"encoderd_queue_tokens",
                               "Tokens that wait for compute now."};
constexpr Spec kCancelled = {
    "encoderd_cancelled_total",
    "Inputs (or each window of one) dropped because their caller went away or "
    "their deadline passed, by the stage they had reached."};
constexpr Spec kModelInfo = {
    "encoderd_model_info", "1 for each model served, 0 before one is loaded."};
constexpr Spec kBuildInfo = {"encoderd_build_info", "Always 1."};

const Buckets kSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                          0.25,   0.5,   1,      2.5,   5,    10,    30};
const Buckets kStageSeconds = {0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.0025,
                               0.005,   0.01,    0.025,  0.05,   0.1,   0.25,
                               0.5,     1,       2.5,    5,      10};
const Buckets kTokenCounts = {4,   8,    16,   32,   64,   128,   256,
                              512, 1024, 2048, 4096, 8192, 16384, 32768};
const Buckets kSequenceCounts = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

template <typename Builder>
auto& Family(Builder builder, const Spec& spec, prometheus::Registry& to) {
  return builder.Name(spec.name).Help(spec.help).Register(to);
}

prometheus::Counter* Counter(const Spec& spec, prometheus::Registry& to,
                             const std::map<std::string, std::string>& labels) {
  return &Family(prometheus::BuildCounter(), spec, to).Add(labels);
}

prometheus::Gauge* Gauge(const Spec& spec, prometheus::Registry& to,
                         const std::map<std::string, std::string>& labels) {
  return &Family(prometheus::BuildGauge(), spec, to).Add(labels);
}

prometheus::Histogram* Histogram(
    const Spec& spec, prometheus::Registry& to, const Buckets& buckets,
    const std::map<std::string, std::string>& labels = {}) {
  return &Family(prometheus::BuildHistogram(), spec, to).Add(labels, buckets);
}

template <typename Handles>
auto* Named(absl::string_view kind, absl::string_view name, Handles* handles) {
  const auto at = handles->find(name);
  if (at == handles->end()) {
    std::cerr << "no metrics for the " << kind << " '" << name << "'\n";
    std::abort();
  }
  return &at->second;
}

}  // namespace

const char* StageName(Stage stage) {
  constexpr const char* kNames[] = {"tokenize", "queue", "batch", "compute",
                                    "reply"};
  static_assert(std::size(kNames) == kNumStages);
  return kNames[static_cast<int>(stage)];
}

const std::vector<std::string>& RejectionReasons() {
  static const auto* const kReasons =
      new std::vector<std::string>{"INPUT_TOO_LONG",
                                   "TOKEN_ID_OUT_OF_RANGE",
                                   "SEGMENT_ID_OUT_OF_RANGE",
                                   "POSITION_ID_OUT_OF_RANGE",
                                   "SEGMENT_IDS_LENGTH",
                                   "POSITION_IDS_LENGTH",
                                   "NO_INPUTS",
                                   "TOO_MANY_INPUTS",
                                   "EMPTY_INPUT",
                                   "INVALID_UTF8",
                                   "MALFORMED_MESSAGE",
                                   "INVALID_OPTION",
                                   "LAYER_OUT_OF_RANGE",
                                   "MODEL_NOT_FOUND",
                                   "PROMPT_NOT_FOUND",
                                   "QUEUE_FULL",
                                   "REQUEST_TOO_LARGE",
                                   "LOADING",
                                   "DRAINING",
                                   "EXPIRED_IN_QUEUE",
                                   "CANCELLED_IN_QUEUE",
                                   "DEVICE_FAULT",
                                   "ROWS_OUT_OF_RANGE",
                                   "INTERNAL_FAULT"};
  return *kReasons;
}

Metrics::Metrics(const std::vector<std::string>& models,
                 const std::vector<std::string>& methods) {
  for (const std::string& method : methods) {
    MethodMetrics& of = methods_[method];
    of.metrics_ = this;
    for (size_t code = 0; code < kAnswerCodes.size(); ++code) {
      of.answers_[code] =
          Counter(kRequests, registry_,
                  {{"method", method},
                   {"code", absl::StatusCodeToString(kAnswerCodes[code])}});
    }
  }
  for (const std::string& reason : RejectionReasons()) {
    rejections_[reason] = Counter(kRejections, registry_, {{"reason", reason}});
  }
  for (int stage = 0; stage < kNumStages; ++stage) {
    const char* name = StageName(static_cast<Stage>(stage));
    stage_duration_[stage] =
        Histogram(kStageDuration, registry_, kStageSeconds, {{"stage", name}});
  }
  request_duration_ = Histogram(kRequestDuration, registry_, kSeconds);
  for (const std::string& model : models) {
    const std::map<std::string, std::string> labels = {{"model", model}};
    ModelMetrics& of = models_[model];
    of.batch_tokens_ = Histogram(kBatchTokens, registry_, kTokenCounts, labels);
    of.batch_sequences_ =
        Histogram(kBatchSequences, registry_, kSequenceCounts, labels);
    of.input_tokens_ = Histogram(kInputTokens, registry_, kTokenCounts, labels);
    of.tokens_ = Counter(kTokens, registry_, labels);
    of.queue_inputs_ = Gauge(kQueueInputs, registry_, labels);
    of.queue_tokens_ = Gauge(kQueueTokens, registry_, labels);
    for (int stage = 0; stage < kNumStages; ++stage) {
      of.cancelled_[stage] = Counter(
          kCancelled, registry_,
          {{"model", model}, {"stage", StageName(static_cast<Stage>(stage))}});
    }
  }
  model_info_ = &Family(prometheus::BuildGauge(), kModelInfo, registry_);
  model_info_empty_ = &model_info_->Add({});
  Family(prometheus::BuildGauge(), kBuildInfo, registry_)
      .Add({{"version", kVersion}, {"compiler", __VERSION__}})
      .Set(1);
}

void MethodMetrics::Answered(absl::StatusCode code, absl::string_view reason,
                             absl::Duration duration) {
  const auto at = std::find(kAnswerCodes.begin(), kAnswerCodes.end(), code);
  const size_t index = at == kAnswerCodes.end() ? kAnswerCodes.size() - 1
                                                : at - kAnswerCodes.begin();
  answers_[index]->Increment();
  metrics_->request_duration_->Observe(absl::ToDoubleSeconds(duration));
  if (code != absl::StatusCode::kOk && !reason.empty()) {
    metrics_->InputRejected(reason);
  }
}

void Metrics::InputRejected(absl::string_view reason) {
  auto rejection = rejections_.find(reason);
  if (rejection == rejections_.end()) {
    rejection = rejections_.find("INTERNAL_FAULT");
  }
  rejection->second->Increment();
}

void Metrics::StageDuration(Stage stage, absl::Duration duration) {
  stage_duration_[static_cast<int>(stage)]->Observe(
      absl::ToDoubleSeconds(duration));
}

void ModelMetrics::Batch(int64_t tokens, int64_t sequences) {
  batch_tokens_->Observe(static_cast<double>(tokens));
  batch_sequences_->Observe(static_cast<double>(sequences));
  tokens_->Increment(static_cast<double>(tokens));
}

void ModelMetrics::InputTokens(int64_t tokens) {
  input_tokens_->Observe(static_cast<double>(tokens));
}

void ModelMetrics::Queue(int64_t sequences, int64_t tokens) {
  queue_inputs_->Set(static_cast<double>(sequences));
  queue_tokens_->Set(static_cast<double>(tokens));
}

void ModelMetrics::Cancelled(Stage stage, int64_t sequences) {
  cancelled_[static_cast<int>(stage)]->Increment(
      static_cast<double>(sequences));
}

MethodMetrics* Metrics::ForMethod(absl::string_view method) {
  return Named("method", method, &methods_);
}

ModelMetrics* Metrics::ForModel(absl::string_view model) {
  return Named("model", model, &models_);
}

void Metrics::SetModel(const std::map<std::string, std::string>& labels) {
  if (model_info_empty_ != nullptr) model_info_->Remove(model_info_empty_);
  model_info_empty_ = nullptr;
  model_info_->Add(labels).Set(1);
}

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace encoderd
