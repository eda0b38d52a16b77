#include "server/observe/pipeline_reporter.h"

#include "server/base/log.h"

namespace encoderd {

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
