#include "server/observe/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "prometheus/text_serializer.h"
#include "server/observe/metric_spec.h"
#include "server/pipeline/reasons.h"

namespace encoderd {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;
using Labels = MetricLabels;
using Spec = MetricSpec;

// The table. Histograms name their buckets below.
// Of calls.
constexpr Spec kRequests = {
    "encoderd_requests_total",
    "Calls answered, and requests of streams, by method, model, outcome and "
    "status code."};
constexpr Spec kRequestDuration = {
    "encoderd_request_duration_seconds",
    "Time from the arrival of a call until its answer is ready to be sent."};
constexpr Spec kInFlight = {
    "encoderd_requests_in_flight",
    "Calls, and requests of streams, not answered yet."};
constexpr Spec kRejections = {
    "encoderd_rejections_total",
    "Calls, and inputs of PER_INPUT, answered with an error, by reason."};
// Of models.
constexpr Spec kStageDuration = {"encoderd_stage_duration_seconds",
                                 "Time in a stage: tokenize, queue and reply "
                                 "per call, batch and compute per batch."};
constexpr Spec kBatchTokens = {"encoderd_batch_tokens",
                               "Tokens per batch, duplicates not counted."};
constexpr Spec kBatchSequences = {
    "encoderd_batch_sequences",
    "Sequences per batch: inputs, or each window of one; duplicates not "
    "counted."};
constexpr Spec kInputTokens = {"encoderd_input_tokens",
                               "Tokens per admitted sequence (an input, or "
                               "each window of one), special tokens included."};
constexpr Spec kTokens = {"encoderd_tokens_total",
                          "Tokens of computed sequences, duplicates included."};
constexpr Spec kDuplicateTokens = {
    "encoderd_duplicate_tokens_total",
    "Tokens of sequences that got the result of an equal one in their batch."};
constexpr Spec kCancelled = {
    "encoderd_cancelled_total",
    "Inputs (or each window of one) dropped because the caller canceled or the "
    "deadline passed, by the stage they had reached."};
constexpr Spec kQueueInputs = {
    "encoderd_queue_inputs",
    "Sequences (inputs, or each window of one) waiting for compute."};
constexpr Spec kQueueTokens = {"encoderd_queue_tokens",
                               "Tokens waiting for compute."};
constexpr Spec kAdmittedTokens = {"encoderd_admitted_tokens",
                                  "Tokens of calls admitted and not answered "
                                  "yet; estimated before tokenization."};
constexpr Spec kAdmittedTokensLimit = {
    "encoderd_admitted_tokens_limit",
    "Admitted tokens beyond which calls get QUEUE_FULL."};
constexpr Spec kAdmittedBytes = {
    "encoderd_admitted_bytes", "Bytes of text admitted and not tokenized yet."};
constexpr Spec kAdmittedBytesLimit = {
    "encoderd_admitted_bytes_limit",
    "Admitted bytes beyond which calls get QUEUE_FULL."};
constexpr Spec kComputeThreads = {"encoderd_compute_threads",
                                  "Threads that compute batches."};
constexpr Spec kComputeThreadsBusy = {"encoderd_compute_threads_busy",
                                      "Threads that work on a batch now."};
constexpr Spec kOldestBatchAge = {
    "encoderd_oldest_batch_age_seconds",
    "How long the oldest batch in compute has been there; 0 if there is none."};
constexpr Spec kMaxBatchTokens = {"encoderd_max_batch_tokens",
                                  "Largest number of tokens per batch."};
constexpr Spec kModelInfo = {"encoderd_model_info",
                             "1 for each served model, 0 before it is loaded."};

// Ten for each power of ten, from 10^exponent to `last`. For a typical
// distribution of calls (log-normal, sigma 0.4) p50, p90 and p99 are then
// within 10 % of the true value; with steps of 1.5 every fourth p99 is not.
// Each bound is a quotient or product of whole numbers, so that its text is as
// short as here.
Buckets Steps(int exponent, double last) {
  Buckets steps;
  for (;; ++exponent) {
    const double power = std::pow(10.0, std::abs(exponent - 2));
    for (const int part : {100, 125, 160, 200, 250, 320, 400, 500, 630, 800}) {
      const double step = exponent > 1 ? part * power : part / power;
      steps.push_back(std::min(step, last));
      if (step >= last) return steps;
    }
  }
}

const Buckets kRequestSeconds = Steps(-3, 60);
// Tokenize and queue hold waits, the others work.
const std::array<Buckets, kNumStages> kStageSeconds = {
    Steps(-5, 60), Steps(-5, 60), Steps(-6, 0.1), Steps(-4, 60), Steps(-6, 1)};
const Buckets kTokenCounts = {4,   8,    16,   32,   64,   128,   256,
                              512, 1024, 2048, 4096, 8192, 16384, 32768};
const Buckets kSequenceCounts = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

// For a call that no model took; any other result is INTERNAL. A queue is full
// for a model, so without one the limit is the caller's own, or that of
// streams.
constexpr absl::StatusCode kCodesWithoutModel[] = {
    absl::StatusCode::kInvalidArgument,  absl::StatusCode::kNotFound,
    absl::StatusCode::kUnauthenticated,  absl::StatusCode::kUnavailable,
    absl::StatusCode::kCancelled,        absl::StatusCode::kInternal,
    absl::StatusCode::kResourceExhausted};
// For a call that a model took: its caller was known by then. What is not found
// is a prompt, of inputs.
constexpr absl::StatusCode kCodesWithModel[] = {
    absl::StatusCode::kOk,          absl::StatusCode::kInvalidArgument,
    absl::StatusCode::kUnavailable, absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kCancelled,   absl::StatusCode::kDeadlineExceeded,
    absl::StatusCode::kInternal,    absl::StatusCode::kNotFound};
// For a method that names no model: it finds nothing and waits for nothing.
constexpr absl::StatusCode kCodesOfNoModel[] = {
    absl::StatusCode::kOk,          absl::StatusCode::kInvalidArgument,
    absl::StatusCode::kUnavailable, absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kCancelled,   absl::StatusCode::kUnauthenticated,
    absl::StatusCode::kInternal};
constexpr size_t kInternalIndex = kAnswerCodes.size() - 1;
constexpr size_t kOwnLimitIndex = kAnswerCodes.size();

size_t IndexOf(absl::StatusCode code) {
  const auto at = std::find(kAnswerCodes.begin(), kAnswerCodes.end(), code);
  static_assert(kAnswerCodes.back() == absl::StatusCode::kInternal);
  return at == kAnswerCodes.end() ? kInternalIndex : at - kAnswerCodes.begin();
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

Metrics::Metrics(const std::vector<std::string>& models,
                 const std::vector<ServedMethod>& methods,
                 const std::string& revision)
    : server_(revision, registry_) {
  AddRejections("", &no_model_);
  for (size_t i = 0; i < models.size(); ++i) AddModel(models[i], i + 1);
  for (const ServedMethod& method : methods) AddMethod(method, models);
  model_info_ = &Family(prometheus::BuildGauge(), kModelInfo, registry_);
  model_info_empty_ = &model_info_->Add({});
}

void Metrics::AddRejections(const std::string& model, ModelCalls* to) {
  for (const std::string& reason : RejectionReasons()) {
    to->rejections_[reason] =
        Counter(kRejections, registry_, {{"model", model}, {"reason", reason}});
  }
}

void Metrics::AddModel(const std::string& model, size_t index) {
  const Labels labels = {{"model", model}};
  ModelMetrics& of = models_[model];
  of.index_ = index;
  AddRejections(model, &of);
  of.batch_tokens_ = Histogram(kBatchTokens, registry_, kTokenCounts, labels);
  of.batch_sequences_ =
      Histogram(kBatchSequences, registry_, kSequenceCounts, labels);
  of.input_tokens_ = Histogram(kInputTokens, registry_, kTokenCounts, labels);
  of.tokens_ = Counter(kTokens, registry_, labels);
  of.duplicate_tokens_ = Counter(kDuplicateTokens, registry_, labels);
  of.queue_inputs_ = Gauge(kQueueInputs, registry_, labels);
  of.queue_tokens_ = Gauge(kQueueTokens, registry_, labels);
  of.admitted_tokens_ = Gauge(kAdmittedTokens, registry_, labels);
  of.admitted_tokens_limit_ = Gauge(kAdmittedTokensLimit, registry_, labels);
  of.admitted_bytes_ = Gauge(kAdmittedBytes, registry_, labels);
  of.admitted_bytes_limit_ = Gauge(kAdmittedBytesLimit, registry_, labels);
  of.compute_threads_ = Gauge(kComputeThreads, registry_, labels);
  of.compute_threads_busy_ = Gauge(kComputeThreadsBusy, registry_, labels);
  of.oldest_batch_age_ = Gauge(kOldestBatchAge, registry_, labels);
  of.max_batch_tokens_ = Gauge(kMaxBatchTokens, registry_, labels);
  for (int stage = 0; stage < kNumStages; ++stage) {
    const Labels both = {{"model", model},
                         {"stage", StageName(static_cast<Stage>(stage))}};
    of.stage_duration_[stage] =
        Histogram(kStageDuration, registry_, kStageSeconds[stage], both);
    of.cancelled_[stage] = Counter(kCancelled, registry_, both);
  }
}

void Metrics::AddMethod(const ServedMethod& method,
                        const std::vector<std::string>& models) {
  MethodMetrics& of = methods_[method.name];
  of.name_ = method.name;
  of.in_flight_ = Gauge(kInFlight, registry_, {{"method", method.name}});
  if (!method.names_model) {
    of.endings_.assign(models.size() + 1,
                       AddEndings(method.name, "", kCodesOfNoModel));
    return;
  }
  absl::Span<const absl::StatusCode> codes = kCodesWithoutModel;
  if (!method.streams) codes.remove_suffix(1);
  of.endings_.push_back(AddEndings(method.name, "", codes));
  codes = kCodesWithModel;
  if (!method.takes_inputs) codes.remove_suffix(1);
  for (const std::string& model : models) {
    of.endings_.push_back(AddEndings(method.name, model, codes));
  }
}

MethodMetrics::Endings Metrics::AddEndings(
    const std::string& method, const std::string& model,
    absl::Span<const absl::StatusCode> codes) {
  const auto add = [&](absl::StatusCode code, const char* outcome) {
    Labels labels = {
        {"method", method}, {"model", model}, {"outcome", outcome}};
    MethodMetrics::Ending ending;
    ending.duration =
        Histogram(kRequestDuration, registry_, kRequestSeconds, labels);
    labels["code"] = absl::StatusCodeToString(code);
    ending.requests = Counter(kRequests, registry_, labels);
    return ending;
  };
  MethodMetrics::Endings endings;
  for (const absl::StatusCode code : codes) {
    endings[IndexOf(code)] = add(code, OutcomeOf(code));
  }
  // RESOURCE_EXHAUSTED by the caller's own limit.
  endings[kOwnLimitIndex] =
      add(absl::StatusCode::kResourceExhausted, "invalid");
  for (MethodMetrics::Ending& ending : endings) {
    if (ending.requests == nullptr) ending = endings[kInternalIndex];
  }
  return endings;
}

void MethodMetrics::Answered(ModelCalls* model, const AnswerStatus& status,
                             absl::Duration duration) {
  const Ending& ending =
      endings_[model->index_]
              [status.own_limit ? kOwnLimitIndex : IndexOf(status.code)];
  ending.requests->Increment();
  ending.duration->Observe(absl::ToDoubleSeconds(duration));
  if (status.code != absl::StatusCode::kOk && !status.reason.empty()) {
    model->Rejected(status.reason);
  }
}

void ModelCalls::Rejected(absl::string_view reason) {
  auto rejection = rejections_.find(reason);
  if (rejection == rejections_.end()) {
    rejection = rejections_.find(reason::kInternalFault);
  }
  rejection->second->Increment();
}

void ModelMetrics::StageDuration(Stage stage, absl::Duration duration) {
  stage_duration_[static_cast<int>(stage)]->Observe(
      absl::ToDoubleSeconds(duration));
}

void ModelMetrics::Batch(int64_t tokens, int64_t sequences,
                         int64_t duplicate_tokens) {
  batch_tokens_->Observe(static_cast<double>(tokens));
  batch_sequences_->Observe(static_cast<double>(sequences));
  tokens_->Increment(static_cast<double>(tokens + duplicate_tokens));
  duplicate_tokens_->Increment(static_cast<double>(duplicate_tokens));
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

void ModelMetrics::Sample(const PipelineFigures& figures) {
  const auto set = [](prometheus::Gauge* gauge, int64_t value) {
    gauge->Set(static_cast<double>(value));
  };
  set(admitted_tokens_, figures.admitted_tokens);
  set(admitted_tokens_limit_, figures.admitted_tokens_limit);
  set(admitted_bytes_, figures.admitted_bytes);
  set(admitted_bytes_limit_, figures.admitted_bytes_limit);
  set(compute_threads_, figures.compute_threads);
  set(compute_threads_busy_, figures.compute_threads_busy);
  oldest_batch_age_->Set(absl::ToDoubleSeconds(figures.oldest_batch_age));
  set(max_batch_tokens_, figures.max_batch_tokens);
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
  std::ostringstream text;
  text.exceptions(std::ios::badbit);  // or a page is cut where memory ends
  prometheus::TextSerializer().Serialize(text, registry_.Collect());
  return text.str();
}

}  // namespace encoderd
