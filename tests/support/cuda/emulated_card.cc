#include "tests/support/cuda/emulated_card.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/support/cuda/emulated_stream.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int kMemoryAllocation = 2;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidHandle = 400;
constexpr int kCaptureUnsupported = 900;
constexpr int kCaptureInvalidated = 901;

struct EmulatedGraph {
  std::vector<emulation::Work> work;
  int32_t device;
};

}  // namespace

EmulatedRuntime::~EmulatedRuntime() {
  // Whoever allocates gives back: AddressSanitizer reports what is left.
}

void EmulatedRuntime::Fail(const std::string& name, int code, int number,
                           bool forever) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failures_[name] = {code, number, forever};
}

int EmulatedRuntime::Call(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = failures_.find(name);
  if (found == failures_.end() || found->second.number-- > 0) return 0;
  const int code = found->second.code;
  if (!found->second.forever) failures_.erase(found);
  return code;
}

int EmulatedRuntime::CountDevices(int32_t* count) {
  *count = devices;
  return Call("CountDevices");
}

int EmulatedRuntime::Describe(int32_t device, Card* described) {
  const auto other = other_cards.find(device);
  *described = other == other_cards.end() ? card : other->second;
  return Call("Describe");
}

int EmulatedRuntime::UseDevice(int32_t device) {
  if (device < 0 || device >= devices) return kInvalidDevice;
  const int code = Call("UseDevice");
  const std::lock_guard<std::mutex> lock(mutex_);
  if (code == 0) current_[std::this_thread::get_id()] = device;
  return code;
}

int32_t EmulatedRuntime::CurrentDevice() const {
  const auto found = current_.find(std::this_thread::get_id());
  return found == current_.end() ? 0 : found->second;
}

int64_t EmulatedRuntime::AllocatedOn(int32_t device) const {
  int64_t bytes = 0;
  for (const auto& [memory, block] : blocks_)
    bytes += block.device == device ? block.bytes : 0;
  return bytes;
}

int64_t EmulatedRuntime::FreeOn(int32_t device) const {
  const auto other = other_free_bytes.find(device);
  const int64_t bytes =
      other == other_free_bytes.end() ? free_bytes : other->second;
  return bytes - AllocatedOn(device);
}

bool EmulatedRuntime::IsHere(const void* memory, Stream stream) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto owner = streams_.find(stream);
  if (owner != streams_.end() && owner->second != CurrentDevice()) return false;
  auto block = blocks_.upper_bound(memory);
  return block != blocks_.begin() &&
         (--block)->second.device == CurrentDevice();
}

int64_t EmulatedRuntime::allocated_bytes() const {
  int64_t bytes = 0;
  for (int32_t device = 0; device < devices; ++device)
    bytes += allocated_bytes(device);
  return bytes;
}

int64_t EmulatedRuntime::allocated_bytes(int32_t device) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return AllocatedOn(device);
}

int64_t EmulatedRuntime::streams() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(streams_.size());
}

int EmulatedRuntime::FreeBytes(int64_t* bytes) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    *bytes = FreeOn(CurrentDevice());
  }
  return Call("FreeBytes");
}

int EmulatedRuntime::Allocate(int64_t bytes, void** memory) {
  int code = Call("Allocate");
  if (code == 0) code = Forbidden();
  if (code != 0) return code;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > FreeOn(CurrentDevice())) return kMemoryAllocation;
  if (posix_memalign(memory, 256, bytes) != 0) return kMemoryAllocation;
  std::memset(*memory, 0xff, bytes);
  blocks_[*memory] = {bytes, CurrentDevice()};
  ++allocations_;
  return 0;
}

void EmulatedRuntime::Free(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  blocks_.erase(blocks_.find(memory));
  --allocations_;
  free(memory);
}

int EmulatedRuntime::AllocatePinned(int64_t bytes, void** memory) {
  int code = Call("AllocatePinned");
  if (code == 0) code = Forbidden();
  if (code != 0) return code;
  *memory = malloc(bytes);
  ++allocations_;
  return 0;
}

void EmulatedRuntime::FreePinned(void* memory) {
  --allocations_;
  free(memory);
}

int EmulatedRuntime::NewStream(Stream* stream) {
  const int code = Call("NewStream");
  if (code != 0) return code;
  *stream = malloc(1);
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_[*stream] = CurrentDevice();
  return 0;
}

void EmulatedRuntime::FreeStream(Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_.erase(stream);
  free(stream);
}

int EmulatedRuntime::CopyToDevice(const void* from, int64_t bytes, void* to,
                                  Stream stream) {
  if (!IsHere(to, stream)) return kInvalidHandle;
  emulation::Put(stream, [=] {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return 0;
  });
  return Call("CopyToDevice");
}

int EmulatedRuntime::CopyToHost(const void* from, int64_t bytes, void* to,
                                Stream stream) {
  if (!IsHere(from, stream)) return kInvalidHandle;
  emulation::Put(stream, [=] {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return 0;
  });
  return Call("CopyToHost");
}

int EmulatedRuntime::CopyToDeviceAndWait(const void* from, int64_t bytes,
                                         void* to) {
  if (!IsHere(to, nullptr)) return kInvalidHandle;
  if (const int code = Forbidden(); code != 0) return code;
  if (bytes > 0) std::memcpy(to, from, bytes);
  return Call("CopyToDeviceAndWait");
}

int EmulatedRuntime::FillWithNaNs(void* memory, int64_t bytes, Stream stream) {
  if (!IsHere(memory, stream)) return kInvalidHandle;
  emulation::Put(stream, [=] {
    std::memset(memory, 0xff, bytes);
    return 0;
  });
  return Call("FillWithNaNs");
}

int EmulatedRuntime::Synchronize(Stream stream) {
  const int code = Call("Synchronize");
  return code == 0 ? Forbidden() : code;
}

int EmulatedRuntime::NewEvent(Event* event) {
  const int code = Call("NewEvent");
  if (code != 0) return code;
  *event = new double(0);
  ++events_;
  return 0;
}

void EmulatedRuntime::FreeEvent(Event event) {
  --events_;
  delete static_cast<double*>(event);
}

int EmulatedRuntime::RecordEvent(Event event, Stream stream) {
  const int code = Call("RecordEvent");
  if (code != 0) return code;
  return emulation::Put(stream, [=, this] {
    const auto moment = static_cast<double>(++moments_);
    *static_cast<double*>(event) = clock == nullptr ? 1e-3 * moment : clock();
    return 0;
  });
}

int EmulatedRuntime::SecondsBetween(Event from, Event to, double* seconds) {
  *seconds = *static_cast<double*>(to) - *static_cast<double*>(from);
  return Call("SecondsBetween");
}

int EmulatedRuntime::Forbidden() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = capturing_.find(std::this_thread::get_id());
  if (found == capturing_.end()) return 0;
  found->second.valid = false;
  return kCaptureUnsupported;
}

int EmulatedRuntime::BeginCapture(Stream stream) {
  const int code = Call("BeginCapture");
  if (code != 0) return code;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (streams_.count(stream) == 0 || emulation::Captures(stream))
    return kInvalidHandle;
  emulation::BeginCapture(stream);
  capturing_[std::this_thread::get_id()] = {stream, true};
  return 0;
}

int EmulatedRuntime::EndCapture(Stream stream, Graph* graph) {
  *graph = nullptr;
  int code = Call("EndCapture");
  if (code == 0) code = Call("Instantiate");
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = capturing_.find(std::this_thread::get_id());
  if (found == capturing_.end() || found->second.stream != stream)
    return kInvalidHandle;
  std::vector<emulation::Work> work = emulation::EndCapture(stream);
  if (code == 0 && !found->second.valid) code = kCaptureInvalidated;
  capturing_.erase(found);
  if (code != 0) return code;
  *graph = new EmulatedGraph{std::move(work), CurrentDevice()};
  ++graphs_;
  ++captures_;
  return 0;
}

int EmulatedRuntime::LaunchGraph(Graph graph, Stream stream) {
  const int code = Call("LaunchGraph");
  if (code != 0) return code;
  const auto* launched = static_cast<const EmulatedGraph*>(graph);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto owner = streams_.find(stream);
    if (owner == streams_.end() || owner->second != CurrentDevice() ||
        launched->device != CurrentDevice())
      return kInvalidHandle;
  }
  ++launches_;
  for (const emulation::Work& work : launched->work) {
    const int failed = emulation::Put(stream, work);
    if (failed != 0) return failed;
  }
  return 0;
}

void EmulatedRuntime::FreeGraph(Graph graph) {
  --graphs_;
  delete static_cast<EmulatedGraph*>(graph);
}

std::string EmulatedRuntime::ErrorText(int code) {
  return "emulated error " + std::to_string(code);
}

}  // namespace cuda
}  // namespace encoderd
