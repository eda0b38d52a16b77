#include "server/observe/pipeline_reporter.h"

#include "server/observe/log.h"

namespace encoderd {
namespace {

Stage ToStage(PipelineObserver::Stage stage) {
  switch (stage) {
    case PipelineObserver::Stage::kTokenize:
      return Stage::kTokenize;
    case PipelineObserver::Stage::kQueue:
      return Stage::kQueue;
    case PipelineObserver::Stage::kBatch:
      return Stage::kBatch;
    case PipelineObserver::Stage::kCompute:
      return Stage::kCompute;
  }
  return Stage::kCompute;
}

}  // namespace

void PipelineReporter::StageDuration(PipelineObserver::Stage stage,
                                     absl::Duration duration) {
  metrics_->StageDuration(ToStage(stage), duration);
}

void PipelineReporter::InputTokens(int64_t tokens) {
  model_metrics_->InputTokens(tokens);
}

void PipelineReporter::BatchComputed(int64_t tokens, int64_t sequences) {
  model_metrics_->Batch(tokens, sequences);
}

void PipelineReporter::QueueChanged(int64_t inputs, int64_t tokens) {
  model_metrics_->Queue(inputs, tokens);
}

void PipelineReporter::Cancelled(PipelineObserver::Stage stage,
                                 int64_t inputs) {
  model_metrics_->Cancelled(ToStage(stage), inputs);
}

void PipelineReporter::DeviceFault(bool lost, const absl::Status& status) {
  Log(LogLevel::kError, lost ? "device_lost" : "device_fault",
      LogFields().Add("model", model_).Add("status", status.ToString()));
  if (lost) on_device_lost_();
}

void PipelineReporter::DeviceNote(const std::string& note) {
  Log(LogLevel::kWarning, "device_note",
      LogFields().Add("model", model_).Add("note", note));
}

}  // namespace encoderd
