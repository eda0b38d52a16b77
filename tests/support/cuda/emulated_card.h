// A card on the host: memory, copies and products that run at once, kernels by
// the emulation. Any call can be made to fail.
#ifndef ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_CARD_H_
#define ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_CARD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/cuda/runtime.h"
#include "tests/support/cuda/emulated_products.h"

namespace encoderd {
namespace cuda {

// Memory is of exactly the size asked for and begins as NaNs, so that
// AddressSanitizer sees a kernel leave it and a result shows what was never
// written. A stream that captures takes what the thread that began it may not
// do in between as the end of the capture, as a card does. Of several cards a
// thread uses one at a time (UseDevice; at first 0): copies to another's memory
// or on another's stream fail. Thread-safe.
class EmulatedRuntime : public Runtime {
 public:
  ~EmulatedRuntime() override;

  int32_t devices = 1;
  Card card = {"Emulated Card", 9, 0, int64_t{1} << 30,
               /*multiprocessors=*/64};
  std::map<int32_t, Card> other_cards;    // that are not like `card`
  int64_t free_bytes = int64_t{1} << 30;  // of a card, less what is allocated
  std::map<int32_t, int64_t> other_free_bytes;  // of a card that has not those

  // Seconds from any start, asked when an event is recorded; each answer is a
  // millisecond after the one before unless this is set. Before any event.
  std::function<double()> clock;

  // The call named `name` ("Allocate", "CopyToDevice", ...) gives `code` the
  // `number`th time from now on (0: the next) and, if `forever`, always after
  // it.
  void Fail(const std::string& name, int code, int number = 0,
            bool forever = false);

  int64_t allocated_bytes() const;  // of all cards
  int64_t allocated_bytes(int32_t device) const;
  int64_t allocations() const { return allocations_; }  // alive, pinned too
  int64_t streams() const;                              // alive
  int64_t events() const { return events_; }            // alive
  int64_t graphs() const { return graphs_; }            // alive
  int64_t captures() const { return captures_; }        // that gave a graph
  int64_t launches() const { return launches_; }        // of graphs

  int CountDevices(int32_t* count) override;
  int Describe(int32_t device, Card* card) override;
  int UseDevice(int32_t device) override;
  int FreeBytes(int64_t* bytes) override;
  int Allocate(int64_t bytes, void** memory) override;
  void Free(void* memory) override;
  int AllocatePinned(int64_t bytes, void** memory) override;
  void FreePinned(void* memory) override;
  int NewStream(Stream* stream) override;
  void FreeStream(Stream stream) override;
  int CopyToDevice(const void* from, int64_t bytes, void* to,
                   Stream stream) override;
  int CopyToHost(const void* from, int64_t bytes, void* to,
                 Stream stream) override;
  int CopyToDeviceAndWait(const void* from, int64_t bytes, void* to) override;
  int FillWithNaNs(void* memory, int64_t bytes, Stream stream) override;
  int Synchronize(Stream stream) override;
  int NewEvent(Event* event) override;
  void FreeEvent(Event event) override;
  int RecordEvent(Event event, Stream stream) override;
  int SecondsBetween(Event from, Event to, double* seconds) override;
  // "Instantiate" fails in EndCapture, with its name.
  int BeginCapture(Stream stream) override;
  int EndCapture(Stream stream, Graph* graph) override;
  int LaunchGraph(Graph graph, Stream stream) override;
  void FreeGraph(Graph graph) override;
  std::string ErrorText(int code) override;

 private:
  struct Failure {
    int code;
    int number;
    bool forever;
  };
  struct Block {
    int64_t bytes;
    int32_t device;
  };
  struct Capture {
    Stream stream;
    bool valid;
  };
  // Of a call that a thread may not make while it captures: ends its capture.
  int Forbidden();
  int Call(const std::string& name);
  // Of the calling thread; mutex_ is held.
  int32_t CurrentDevice() const;
  int64_t AllocatedOn(int32_t device) const;
  int64_t FreeOn(int32_t device) const;
  // Whether the calling thread's card has the memory and the stream.
  bool IsHere(const void* memory, Stream stream) const;

  mutable std::mutex mutex_;
  std::map<std::string, Failure> failures_;
  std::map<std::thread::id, int32_t> current_;
  std::map<const void*, Block> blocks_;
  std::map<Stream, int32_t> streams_;  // and their cards
  std::map<std::thread::id, Capture> capturing_;
  std::atomic<int64_t> allocations_{0};
  std::atomic<int64_t> graphs_{0}, captures_{0}, launches_{0}, events_{0};
  std::atomic<int64_t> moments_{0};  // events recorded
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_CARD_H_
