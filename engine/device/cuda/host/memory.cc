#include "engine/device/cuda/host/memory.h"

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int kMemoryAllocation = 2;  // cudaErrorMemoryAllocation

}  // namespace

bool CanGoOnAfter(int code) {
  switch (code) {
    case 0:
    case 1:                  // cudaErrorInvalidValue
    case kMemoryAllocation:  // nothing was taken
    case 9:                  // cudaErrorInvalidConfiguration
    case 98:                 // cudaErrorInvalidDeviceFunction
    case 209:                // cudaErrorNoKernelImageForDevice
    case 701:                // cudaErrorLaunchOutOfResources
    case 800:                // cudaErrorNotPermitted
    case 801:                // cudaErrorNotSupported
      return true;
    default:
      // cudaErrorStreamCapture...: the capture failed, nothing ran.
      return code >= 900 && code <= 908;
  }
}

absl::Status RuntimeError(Runtime* runtime, int code, absl::string_view what) {
  const std::string message =
      absl::StrCat(what, ": ", runtime->ErrorText(code));
  return CanGoOnAfter(code) ? absl::InternalError(message)
                            : absl::DataLossError(message);
}

absl::Status NotLost(const absl::Status& status) {
  return absl::IsDataLoss(status) ? absl::InternalError(status.message())
                                  : status;
}

absl::StatusOr<OwnedGraph> Capture(Runtime* runtime, Stream stream,
                                   const std::function<absl::Status()>& work) {
  int code = runtime->BeginCapture(stream);
  if (code != 0) return RuntimeError(runtime, code, "beginning a capture");
  const absl::Status status = work();
  Graph captured = nullptr;
  code = runtime->EndCapture(stream, &captured);
  OwnedGraph graph(runtime, captured);
  if (!status.ok()) return status;
  if (code != 0) return RuntimeError(runtime, code, "ending a capture");
  return graph;
}

template <Memory kMemory>
absl::Status Buffer<kMemory>::Take(Runtime* runtime, int64_t bytes,
                                   absl::string_view what) {
  constexpr bool kOfDevice = kMemory == Memory::kDevice;
  const int code = kOfDevice ? runtime->Allocate(bytes, &data_)
                             : runtime->AllocatePinned(bytes, &data_);
  if (code == 0) {
    runtime_ = runtime;
    return absl::OkStatus();
  }
  data_ = nullptr;
  if (code != kMemoryAllocation) return RuntimeError(runtime, code, what);
  int64_t free_bytes = 0;
  const std::string left =
      kOfDevice && runtime->FreeBytes(&free_bytes) == 0
          ? absl::StrCat("; ", free_bytes, " bytes of the card are free")
          : "";
  return absl::ResourceExhaustedError(
      absl::StrCat("no ", kOfDevice ? "device" : "pinned", " memory for ",
                   bytes, " bytes of ", what, left));
}

template class Buffer<Memory::kDevice>;
template class Buffer<Memory::kPinned>;

absl::Status TakeCopy(Runtime* runtime, const void* from, int64_t bytes,
                      absl::string_view what, DeviceBuffer* buffer) {
  absl::Status status = buffer->Take(runtime, bytes, what);
  if (!status.ok()) return status;
  const int code = runtime->CopyToDeviceAndWait(from, bytes, buffer->data());
  return code == 0 ? status : RuntimeError(runtime, code, what);
}

absl::Status OwnedStream::Take(Runtime* runtime) {
  const int code = runtime->NewStream(&stream_);
  if (code != 0) {
    stream_ = nullptr;
    return RuntimeError(runtime, code, "a new stream");
  }
  runtime_ = runtime;
  return absl::OkStatus();
}

absl::Status OwnedEvent::Take(Runtime* runtime) {
  const int code = runtime->NewEvent(&event_);
  if (code != 0) {
    event_ = nullptr;
    return RuntimeError(runtime, code, "a new event");
  }
  runtime_ = runtime;
  return absl::OkStatus();
}

}  // namespace cuda
}  // namespace encoderd
