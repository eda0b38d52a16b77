#include "engine/device/cuda/host/cudart_runtime.h"

#include <cuda_runtime.h>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace cuda {
namespace {

cudaStream_t Of(Stream stream) { return static_cast<cudaStream_t>(stream); }

class CudartRuntime : public Runtime {
 public:
  int CountDevices(int32_t* count) override {
    return ForgetAny(cudaGetDeviceCount(count));
  }
  int Describe(int32_t device, Card* card) override {
    cudaDeviceProp properties;
    const int code = ForgetAny(cudaGetDeviceProperties(&properties, device));
    if (code != cudaSuccess) return code;
    card->name = properties.name;
    card->compute_major = properties.major;
    card->compute_minor = properties.minor;
    card->total_bytes = static_cast<int64_t>(properties.totalGlobalMem);
    card->multiprocessors = properties.multiProcessorCount;
    return code;
  }
  int UseDevice(int32_t device) override {
    return ForgetAny(cudaSetDevice(device));
  }
  int FreeBytes(int64_t* bytes) override {
    size_t free_bytes = 0, total = 0;
    const int code = ForgetAny(cudaMemGetInfo(&free_bytes, &total));
    *bytes = static_cast<int64_t>(free_bytes);
    return code;
  }

  int Allocate(int64_t bytes, void** memory) override {
    return ForgetAny(cudaMalloc(memory, bytes));
  }
  void Free(void* memory) override { ForgetAny(cudaFree(memory)); }
  int AllocatePinned(int64_t bytes, void** memory) override {
    return ForgetAny(cudaHostAlloc(memory, bytes, cudaHostAllocDefault));
  }
  void FreePinned(void* memory) override { ForgetAny(cudaFreeHost(memory)); }

  int NewStream(Stream* stream) override {
    cudaStream_t made = nullptr;
    const int code =
        ForgetAny(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    *stream = made;
    return code;
  }
  void FreeStream(Stream stream) override {
    ForgetAny(cudaStreamDestroy(Of(stream)));
  }
  int CopyToDevice(const void* from, int64_t bytes, void* to,
                   Stream stream) override {
    return ForgetAny(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, Of(stream)));
  }
  int CopyToHost(const void* from, int64_t bytes, void* to,
                 Stream stream) override {
    return ForgetAny(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, Of(stream)));
  }
  int CopyToDeviceAndWait(const void* from, int64_t bytes, void* to) override {
    const int code =
        ForgetAny(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    if (code != cudaSuccess) return code;
    // A copy from pageable memory may return before its last part arrived;
    // streams that do not wait for the default one read it next.
    return ForgetAny(cudaStreamSynchronize(nullptr));
  }
  int FillWithNaNs(void* memory, int64_t bytes, Stream stream) override {
    return ForgetAny(cudaMemsetAsync(memory, 0xff, bytes, Of(stream)));
  }
  int Synchronize(Stream stream) override {
    return ForgetAny(cudaStreamSynchronize(Of(stream)));
  }

  int NewEvent(Event* event) override {
    cudaEvent_t made = nullptr;
    const int code = ForgetAny(cudaEventCreate(&made));
    *event = made;
    return code;
  }
  void FreeEvent(Event event) override {
    cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }
  int RecordEvent(Event event, Stream stream) override {
    return ForgetAny(
        cudaEventRecord(static_cast<cudaEvent_t>(event), Of(stream)));
  }
  int SecondsBetween(Event from, Event to, double* seconds) override {
    float milliseconds = 0;
    const int code = ForgetAny(
        cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(from),
                             static_cast<cudaEvent_t>(to)));
    *seconds = 1e-3 * milliseconds;
    return code;
  }

  int BeginCapture(Stream stream) override {
    return ForgetAny(
        cudaStreamBeginCapture(Of(stream), cudaStreamCaptureModeThreadLocal));
  }
  int EndCapture(Stream stream, Graph* graph) override {
    *graph = nullptr;
    cudaGraph_t captured = nullptr;
    cudaError_t code = cudaStreamEndCapture(Of(stream), &captured);
    if (code == cudaSuccess && captured == nullptr)
      code = cudaErrorStreamCaptureInvalidated;
    cudaGraphExec_t made = nullptr;
    if (code == cudaSuccess) code = cudaGraphInstantiate(&made, captured, 0);
    if (captured != nullptr) cudaGraphDestroy(captured);
    if (code == cudaSuccess) *graph = made;
    return ForgetAny(code);
  }
  int LaunchGraph(Graph graph, Stream stream) override {
    return ForgetAny(
        cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), Of(stream)));
  }
  void FreeGraph(Graph graph) override {
    cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
  }

  std::string ErrorText(int code) override {
    const auto error = static_cast<cudaError_t>(code);
    return absl::StrCat(cudaGetErrorString(error), " (",
                        cudaGetErrorName(error), ")");
  }

 private:
  // An error is reported by its caller; the next launch must not find it as its
  // own. One that loses the context stays.
  static int ForgetAny(cudaError_t code) {
    if (code != cudaSuccess) cudaGetLastError();
    return code;
  }
};

}  // namespace

std::shared_ptr<Runtime> NewCudartRuntime() {
  return std::make_shared<CudartRuntime>();
}

}  // namespace cuda
}  // namespace encoderd
