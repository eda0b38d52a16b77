// Seconds that work takes on a card, by events on its stream.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_EVENT_TIMER_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_EVENT_TIMER_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/device/cuda/host/memory.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

class EventTimer {
 public:
  absl::Status Take(Runtime* runtime);
  // What `work` puts on the stream takes; waits for it. The error of `work`, or
  // of the runtime.
  absl::StatusOr<double> Seconds(const std::function<absl::Status()>& work,
                                 Stream stream);

 private:
  Runtime* runtime_ = nullptr;
  OwnedEvent from_, to_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_EVENT_TIMER_H_
