// What the engine asks of CUDA's runtime, as an interface: the real one is
// cudart_runtime.cc; tests put one on the host behind it, and let any call
// fail.
//
// Every call returns the runtime's error code, 0 for success; ErrorText says it
// in words. Calls are thread-safe, and concern the device that the calling
// thread chose with UseDevice.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_RUNTIME_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_RUNTIME_H_

#include <cstdint>
#include <string>

namespace encoderd {
namespace cuda {

using Stream = void*;  // a cudaStream_t
using Graph = void*;   // a cudaGraphExec_t
using Event = void*;   // a cudaEvent_t

struct Card {
  std::string name;  // "NVIDIA H200"
  int32_t compute_major = 0;
  int32_t compute_minor = 0;
  int64_t total_bytes = 0;
  int32_t multiprocessors = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual int CountDevices(int32_t* count) = 0;
  virtual int Describe(int32_t device, Card* card) = 0;
  virtual int UseDevice(int32_t device) = 0;
  virtual int FreeBytes(int64_t* bytes) = 0;

  // Of the device; aligned to 256.
  virtual int Allocate(int64_t bytes, void** memory) = 0;
  virtual void Free(void* memory) = 0;
  // Of the host, pinned, so that copies need not wait for each other; kernels
  // read and write it at the same address.
  virtual int AllocatePinned(int64_t bytes, void** memory) = 0;
  virtual void FreePinned(void* memory) = 0;

  virtual int NewStream(Stream* stream) = 0;
  virtual void FreeStream(Stream stream) = 0;
  // In the stream's order; the host's side must be pinned and stay as it is
  // until Synchronize.
  virtual int CopyToDevice(const void* from, int64_t bytes, void* to,
                           Stream stream) = 0;
  virtual int CopyToHost(const void* from, int64_t bytes, void* to,
                         Stream stream) = 0;
  // Copies any host memory and waits.
  virtual int CopyToDeviceAndWait(const void* from, int64_t bytes,
                                  void* to) = 0;
  // Sets every byte to 0xff, which are NaNs, in the stream's order.
  virtual int FillWithNaNs(void* memory, int64_t bytes, Stream stream) = 0;
  // Waits for all that the stream was given; also the errors of kernels.
  virtual int Synchronize(Stream stream) = 0;

  virtual int NewEvent(Event* event) = 0;
  virtual void FreeEvent(Event event) = 0;
  // Marks the moment at which the stream's work so far is done.
  virtual int RecordEvent(Event event, Stream stream) = 0;
  // Between two recorded events of a stream that was synchronized since.
  virtual int SecondsBetween(Event from, Event to, double* seconds) = 0;

  // From here on to EndCapture, by the same thread, the stream's work is not
  // done but written down. In between this thread asks for no memory and waits
  // for nothing; other threads may.
  virtual int BeginCapture(Stream stream) = 0;
  // Always after a BeginCapture that gave 0, whatever failed in between. On
  // success a graph of that work; else none.
  virtual int EndCapture(Stream stream, Graph* graph) = 0;
  // All its work in one call.
  virtual int LaunchGraph(Graph graph, Stream stream) = 0;
  virtual void FreeGraph(Graph graph) = 0;

  // "an illegal memory access was encountered (cudaErrorIllegalAddress)"
  virtual std::string ErrorText(int code) = 0;
};

// True of errors that leave the process's context as it was: the call failed
// and the next may succeed. After every other error all later calls fail.
bool CanGoOnAfter(int code);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_RUNTIME_H_
