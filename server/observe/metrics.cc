#include "server/observe/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>

#include "prometheus/text_serializer.h"
#include "server/version.h"

namespace encoderd {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;
using Labels = std::map<std::string, std::string>;

struct Spec {
  const char* name;
  const char* help;
};

// The table. Histograms name their buckets below.
// Of calls.
constexpr Spec kRequests = {
    "encoderd_requests_total",
    "Calls answered, and requests of streams, by method, model, outcome and "
    "status code."};
constexpr Spec kRequestDuration = {
    "encoderd_request_duration_seconds",
    "From a call's arrival to the end of its answer."};
constexpr Spec kInFlight = {
    "encoderd_requests_in_flight",
    "Calls, and requests of streams, whose answer has not left yet."};
constexpr Spec kRejections = {
    "encoderd_rejections_total",
    "Calls, and inputs of PER_INPUT, answered with an error, by its reason."};
// Of models.
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
constexpr Spec kCancelled = {
    "encoderd_cancelled_total",
    "Inputs (or each window of one) dropped because their caller went away or "
    "their deadline passed, by the stage they had reached."};
constexpr Spec kQueueInputs = {"encoderd_queue_inputs",
                               "Sequences (inputs, or each window of one) "
                               "that wait for compute now."};
constexpr Spec kQueueTokens = {"encoderd_queue_tokens",
                               "Tokens that wait for compute now."};
constexpr Spec kAdmittedTokens = {
    "encoderd_admitted_tokens",
    "Tokens of calls that are admitted and not answered yet; estimated until "
    "they are tokenized."};
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
constexpr Spec kMaxBatchTokens = {"encoderd_max_batch_tokens",
                                  "The most tokens of one batch."};
constexpr Spec kModelInfo = {
    "encoderd_model_info", "1 for each model served, 0 before one is loaded."};
// Of the server.
constexpr Spec kConnections = {"encoderd_connections", "Open connections."};
constexpr Spec kConnectionsLimit = {
    "encoderd_connections_limit", "Open connections beyond which others wait."};
constexpr Spec kConnectionsRefused = {
    "encoderd_connections_refused_total",
    "Connections closed at once because their address had enough."};
constexpr Spec kStreams = {"encoderd_streams", "Open EmbedStreams."};
constexpr Spec kUnreadAnswerBytes = {
    "encoderd_unread_answer_bytes",
    "Bytes of answers that their callers have not read."};
constexpr Spec kUnreadAnswersCut = {
    "encoderd_unread_answers_cut_total",
    "Calls reset because nobody read their answer while memory was short."};
constexpr Spec kLogLinesLost = {
    "encoderd_log_lines_lost_total",
    "Lines of the log dropped because standard error took nothing."};
constexpr Spec kState = {"encoderd_state",
                         "1 for the state that the server is in."};
constexpr Spec kBuildInfo = {"encoderd_build_info", "Always 1."};
// Of the process, by the names that every exporter uses.
constexpr Spec kCpuSeconds = {"process_cpu_seconds_total",
                              "Processor time, user and system."};
constexpr Spec kResidentBytes = {"process_resident_memory_bytes",
                                 "Memory in RAM."};
constexpr Spec kVirtualBytes = {"process_virtual_memory_bytes",
                                "Address space."};
constexpr Spec kOpenFds = {"process_open_fds", "Open file descriptors."};
constexpr Spec kMaxFds = {"process_max_fds",
                          "The most file descriptors that may be open."};
constexpr Spec kStartTime = {"process_start_time_seconds",
                             "When the process started, since 1970."};
constexpr Spec kThreads = {"process_threads", "Threads."};

// Ten for each power of ten, from 10^exponent to `last`. Of a spread as calls
// have it (a log-normal one of sigma 0.4) p50, p90 and p99 are then within 10 %
// of the truth; with steps of 1.5 every fourth p99 is not. Each bound is a
// quotient or product of whole numbers, so that it is written as short as here.
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

// Of a call that no model took; one that would end otherwise is INTERNAL.
constexpr absl::StatusCode kCodesWithoutModel[] = {
    absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
    absl::StatusCode::kUnavailable, absl::StatusCode::kCancelled,
    absl::StatusCode::kInternal};

template <typename Builder>
auto& Family(Builder builder, const Spec& spec, prometheus::Registry& to) {
  return builder.Name(spec.name).Help(spec.help).Register(to);
}

prometheus::Counter* Counter(const Spec& spec, prometheus::Registry& to,
                             const Labels& labels = {}) {
  return &Family(prometheus::BuildCounter(), spec, to).Add(labels);
}

prometheus::Gauge* Gauge(const Spec& spec, prometheus::Registry& to,
                         const Labels& labels = {}) {
  return &Family(prometheus::BuildGauge(), spec, to).Add(labels);
}

prometheus::Histogram* Histogram(const Spec& spec, prometheus::Registry& to,
                                 const Buckets& buckets, const Labels& labels) {
  return &Family(prometheus::BuildHistogram(), spec, to).Add(labels, buckets);
}

size_t IndexOf(absl::StatusCode code) {
  const auto at = std::find(kAnswerCodes.begin(), kAnswerCodes.end(), code);
  static_assert(kAnswerCodes.back() == absl::StatusCode::kInternal);
  return at == kAnswerCodes.end() ? kAnswerCodes.size() - 1
                                  : at - kAnswerCodes.begin();
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

// A counter whose value is kept elsewhere.
void CountUpTo(double value, prometheus::Counter* counter) {
  const double more = value - counter->Value();
  if (more > 0) counter->Increment(more);
}

}  // namespace

Metrics::Metrics(const std::vector<std::string>& models,
                 const std::vector<ServedMethod>& methods,
                 const std::string& revision) {
  AddRejections("", &no_model_);
  for (size_t i = 0; i < models.size(); ++i) AddModel(models[i], i + 1);
  for (const ServedMethod& method : methods) AddMethod(method, models);
  AddServer();
  model_info_ = &Family(prometheus::BuildGauge(), kModelInfo, registry_);
  model_info_empty_ = &model_info_->Add({});
  Gauge(kBuildInfo, registry_,
        {{"version", kVersion},
         {"revision", revision},
         {"compiler", __VERSION__}})
      ->Set(1);
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
  of.queue_inputs_ = Gauge(kQueueInputs, registry_, labels);
  of.queue_tokens_ = Gauge(kQueueTokens, registry_, labels);
  of.admitted_tokens_ = Gauge(kAdmittedTokens, registry_, labels);
  of.admitted_tokens_limit_ = Gauge(kAdmittedTokensLimit, registry_, labels);
  of.admitted_bytes_ = Gauge(kAdmittedBytes, registry_, labels);
  of.admitted_bytes_limit_ = Gauge(kAdmittedBytesLimit, registry_, labels);
  of.compute_threads_ = Gauge(kComputeThreads, registry_, labels);
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
  of.in_flight_ = Gauge(kInFlight, registry_, {{"method", method.name}});
  if (!method.names_model) {
    of.endings_.assign(models.size() + 1,
                       AddEndings(method.name, "", kAnswerCodes));
    return;
  }
  of.endings_.push_back(AddEndings(method.name, "", kCodesWithoutModel));
  for (const std::string& model : models) {
    of.endings_.push_back(AddEndings(method.name, model, kAnswerCodes));
  }
}

MethodMetrics::Endings Metrics::AddEndings(
    const std::string& method, const std::string& model,
    absl::Span<const absl::StatusCode> codes) {
  MethodMetrics::Endings endings;
  for (const absl::StatusCode code : codes) {
    Labels labels = {
        {"method", method}, {"model", model}, {"outcome", OutcomeOf(code)}};
    MethodMetrics::Ending& ending = endings[IndexOf(code)];
    ending.duration =
        Histogram(kRequestDuration, registry_, kRequestSeconds, labels);
    labels["code"] = absl::StatusCodeToString(code);
    ending.requests = Counter(kRequests, registry_, labels);
  }
  for (MethodMetrics::Ending& ending : endings) {
    if (ending.requests == nullptr) ending = endings.back();
  }
  return endings;
}

void Metrics::AddServer() {
  connections_ = Gauge(kConnections, registry_);
  connections_limit_ = Gauge(kConnectionsLimit, registry_);
  streams_ = Gauge(kStreams, registry_);
  unread_answer_bytes_ = Gauge(kUnreadAnswerBytes, registry_);
  unread_answers_cut_ = Counter(kUnreadAnswersCut, registry_);
  connections_refused_ = Counter(kConnectionsRefused, registry_);
  log_lines_lost_ = Counter(kLogLinesLost, registry_);
  for (int state = 0; state < kNumServerStates; ++state) {
    state_[state] =
        Gauge(kState, registry_,
              {{"state", StateName(static_cast<ServerState>(state))}});
  }
  cpu_seconds_ = Counter(kCpuSeconds, registry_);
  resident_bytes_ = Gauge(kResidentBytes, registry_);
  virtual_bytes_ = Gauge(kVirtualBytes, registry_);
  open_fds_ = Gauge(kOpenFds, registry_);
  max_fds_ = Gauge(kMaxFds, registry_);
  start_time_ = Gauge(kStartTime, registry_);
  threads_ = Gauge(kThreads, registry_);
}

void MethodMetrics::Answered(ModelCalls* model, absl::StatusCode code,
                             absl::string_view reason,
                             absl::Duration duration) {
  const Ending& ending = endings_[model->index_][IndexOf(code)];
  ending.requests->Increment();
  ending.duration->Observe(absl::ToDoubleSeconds(duration));
  if (code != absl::StatusCode::kOk && !reason.empty()) {
    model->Rejected(reason);
  }
}

void ModelCalls::Rejected(absl::string_view reason) {
  auto rejection = rejections_.find(reason);
  if (rejection == rejections_.end()) {
    rejection = rejections_.find("INTERNAL_FAULT");
  }
  rejection->second->Increment();
}

void ModelMetrics::StageDuration(Stage stage, absl::Duration duration) {
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

void ModelMetrics::Sample(const PipelineFigures& figures) {
  const auto set = [](prometheus::Gauge* gauge, int64_t value) {
    gauge->Set(static_cast<double>(value));
  };
  set(admitted_tokens_, figures.admitted_tokens);
  set(admitted_tokens_limit_, figures.admitted_tokens_limit);
  set(admitted_bytes_, figures.admitted_bytes);
  set(admitted_bytes_limit_, figures.admitted_bytes_limit);
  set(compute_threads_, figures.compute_threads);
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

void Metrics::Sample(const ServerFigures& figures) {
  connections_->Set(static_cast<double>(figures.connections));
  connections_limit_->Set(static_cast<double>(figures.connections_limit));
  streams_->Set(static_cast<double>(figures.streams));
  unread_answer_bytes_->Set(static_cast<double>(figures.unread_answer_bytes));
  CountUpTo(static_cast<double>(figures.unread_answers_cut),
            unread_answers_cut_);
  CountUpTo(static_cast<double>(figures.connections_refused),
            connections_refused_);
  CountUpTo(static_cast<double>(figures.log_lines_lost), log_lines_lost_);
  for (int state = 0; state < kNumServerStates; ++state) {
    state_[state]->Set(state == static_cast<int>(figures.state) ? 1 : 0);
  }
}

void Metrics::Sample(const ProcessFigures& figures) {
  CountUpTo(figures.cpu_seconds, cpu_seconds_);
  resident_bytes_->Set(static_cast<double>(figures.resident_bytes));
  virtual_bytes_->Set(static_cast<double>(figures.virtual_bytes));
  open_fds_->Set(static_cast<double>(figures.open_fds));
  max_fds_->Set(static_cast<double>(figures.max_fds));
  start_time_->Set(figures.start_time_seconds);
  threads_->Set(static_cast<double>(figures.threads));
}

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace encoderd
