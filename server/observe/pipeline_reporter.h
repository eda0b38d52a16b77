// Turns what the pipeline reports into metrics and log lines. Thread-safe.
#ifndef ENCODERD_SERVER_OBSERVE_PIPELINE_REPORTER_H_
#define ENCODERD_SERVER_OBSERVE_PIPELINE_REPORTER_H_

#include <functional>
#include <string>
#include <utility>

#include "server/base/log.h"
#include "server/observe/metrics.h"
#include "server/pipeline/request.h"

namespace encoderd {

class PipelineReporter final : public PipelineObserver {
 public:
  // `on_device_lost`: called from a pipeline thread at each fault that the
  // device cannot recover from; must not block. `metrics` outlives this.
  PipelineReporter(Metrics* metrics, const std::string& model,
                   std::function<void()> on_device_lost)
      : metrics_(metrics->ForModel(model)),
        model_(model),
        on_device_lost_(std::move(on_device_lost)) {}

  void StageDuration(Stage stage, absl::Duration duration) override {
    metrics_->StageDuration(stage, duration);
  }
  void InputTokens(int64_t tokens) override { metrics_->InputTokens(tokens); }
  void BatchComputed(int64_t tokens, int64_t sequences,
                     int64_t duplicate_tokens) override {
    metrics_->Batch(tokens, sequences, duplicate_tokens);
  }
  void QueueChanged(int64_t sequences, int64_t tokens) override {
    metrics_->Queue(sequences, tokens);
  }
  void Cancelled(Stage stage, int64_t sequences) override {
    metrics_->Cancelled(stage, sequences);
  }
  void DeviceFault(bool lost, const absl::Status& status) override;
  void DeviceNote(const std::string& note) override;

 private:
  ModelMetrics* const metrics_;
  const std::string model_;
  const std::function<void()> on_device_lost_;
  CountingLogLimit faults_logged_{kFaultLinesAtOnce, kFaultLineInterval};
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_PIPELINE_REPORTER_H_
