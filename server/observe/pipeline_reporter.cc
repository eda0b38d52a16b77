#include "server/observe/pipeline_reporter.h"

#include "server/base/steady_time.h"

namespace encoderd {

void PipelineReporter::DeviceFault(bool lost, const absl::Status& status) {
  const std::optional<int64_t> left_out =
      lost ? 0 : faults_logged_.Allows(SteadyNow());
  if (left_out.has_value()) {
    Log(LogLevel::kError, lost ? "device_lost" : "device_fault",
        LogFields()
            .Add("model", model_)
            .Add("status", status.ToString())
            .AddLeftOut(*left_out));
  }
  if (lost) on_device_lost_();
}

void PipelineReporter::DeviceNote(const std::string& note) {
  Log(LogLevel::kWarning, "device_note",
      LogFields().Add("model", model_).Add("note", note));
}

}  // namespace encoderd
