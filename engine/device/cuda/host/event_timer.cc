#include "engine/device/cuda/host/event_timer.h"

namespace encoderd {
namespace cuda {

absl::Status EventTimer::Take(Runtime* runtime) {
  runtime_ = runtime;
  absl::Status status = from_.Take(runtime);
  status.Update(to_.Take(runtime));
  return status;
}

absl::StatusOr<double> EventTimer::Seconds(
    const std::function<absl::Status()>& work, Stream stream) {
  int code = runtime_->RecordEvent(from_.get(), stream);
  absl::Status status;
  if (code == 0) status = work();
  if (code == 0) code = runtime_->RecordEvent(to_.get(), stream);
  // Also after an error of `work`: it tells whether the device is lost.
  const int waited = runtime_->Synchronize(stream);
  if (waited != 0) code = waited;
  double seconds = 0;
  if (code == 0 && status.ok())
    code = runtime_->SecondsBetween(from_.get(), to_.get(), &seconds);
  if (code != 0) return RuntimeError(runtime_, code, "timing");
  if (!status.ok()) return NotLost(status);
  return seconds;
}

}  // namespace cuda
}  // namespace encoderd
