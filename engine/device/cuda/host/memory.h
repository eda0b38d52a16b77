// Errors of the runtime as statuses; owners of device and pinned memory, of a
// stream, an event and a graph (and its capture): taken once, given back when
// they go. RESOURCE_EXHAUSTED with the bytes when memory
// cannot be had, INTERNAL for any other error.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_MEMORY_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_MEMORY_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

// INTERNAL, or DATA_LOSS where the context is lost, naming `what` and the
// error.
absl::Status RuntimeError(Runtime* runtime, int code, absl::string_view what);

// `status` of a call whose stream was waited for without an error afterwards,
// so that the device is not lost: DATA_LOSS becomes INTERNAL. cuBLASLt has the
// same code for an algorithm that cannot run, or cannot be captured.
absl::Status NotLost(const absl::Status& status);

enum class Memory { kDevice, kPinned };

template <Memory kMemory>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Buffer() {
    if (data_ == nullptr) return;
    if (kMemory == Memory::kDevice) {
      runtime_->Free(data_);
    } else {
      runtime_->FreePinned(data_);
    }
  }

  // `what`: for the message. Call once.
  absl::Status Take(Runtime* runtime, int64_t bytes, absl::string_view what);

  void* data() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Runtime* runtime_ = nullptr;
  void* data_ = nullptr;
};

using DeviceBuffer = Buffer<Memory::kDevice>;
using PinnedBuffer = Buffer<Memory::kPinned>;

// Takes `bytes` of the device and copies `from` there, any host memory; waits.
absl::Status TakeCopy(Runtime* runtime, const void* from, int64_t bytes,
                      absl::string_view what, DeviceBuffer* buffer);

class OwnedStream {
 public:
  OwnedStream() = default;
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  ~OwnedStream() {
    if (stream_ != nullptr) runtime_->FreeStream(stream_);
  }

  absl::Status Take(Runtime* runtime);
  Stream get() const { return stream_; }

 private:
  Runtime* runtime_ = nullptr;
  Stream stream_ = nullptr;
};

class OwnedEvent {
 public:
  OwnedEvent() = default;
  OwnedEvent(OwnedEvent&& other) noexcept { *this = std::move(other); }
  OwnedEvent& operator=(OwnedEvent&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~OwnedEvent() {
    if (event_ != nullptr) runtime_->FreeEvent(event_);
  }

  absl::Status Take(Runtime* runtime);
  Event get() const { return event_; }

 private:
  Runtime* runtime_ = nullptr;
  Event event_ = nullptr;
};

class OwnedGraph {
 public:
  OwnedGraph() = default;
  OwnedGraph(Runtime* runtime, Graph graph)
      : runtime_(runtime), graph_(graph) {}
  OwnedGraph(OwnedGraph&& other) noexcept { *this = std::move(other); }
  OwnedGraph& operator=(OwnedGraph&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(graph_, other.graph_);
    return *this;
  }
  ~OwnedGraph() {
    if (graph_ != nullptr) runtime_->FreeGraph(graph_);
  }

  Graph get() const { return graph_; }

 private:
  Runtime* runtime_ = nullptr;
  Graph graph_ = nullptr;
};

// A graph of what `work` puts on the stream. Nothing of it is done, and the
// stream is as before, also after an error.
absl::StatusOr<OwnedGraph> Capture(Runtime* runtime, Stream stream,
                                   const std::function<absl::Status()>& work);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_MEMORY_H_
