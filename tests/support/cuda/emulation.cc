#include "tests/support/cuda/emulation.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/cuda/fiber.h"

namespace encoderd {
namespace emulation {
namespace {

constexpr int32_t kWarpSize = 32;
constexpr int32_t kMaxThreads = 1024;
constexpr int32_t kMaxSharedBytes = 48 << 10;
constexpr int32_t kCopyBytes = 16;
constexpr int kInvalidConfiguration = 9;

struct Copy {
  void* shared;
  const void* global;
  bool valid;
};

enum class Wait { kNone, kWarp, kBlock, kDone };

struct Thread {
  Fiber fiber;
  Wait wait = Wait::kNone;
  void* slot = nullptr;
  const char* doing = "";
  bool awaited = false;                  // AwaitEarlierKernels
  std::vector<Copy> open;                // since the last CopyCommit
  std::deque<std::vector<Copy>> groups;  // committed, oldest first
};

// Every block of a thread's Runs, one at a time.
struct Machine {
  std::vector<std::unique_ptr<Thread>> threads;
  Schedule schedule = Schedule::kForward;
  Copies copies = Copies::kLate;
  std::mt19937 random;
  const std::function<void()>* body = nullptr;
  Shape shape;
  int64_t block_x = 0;
  int32_t block_y = 0;
  int32_t current = 0;
  char* shared = nullptr;
  // Who sees the copy in each 16 bytes of shared memory: 0 all, t+1 thread t
  // that waited for it, -(w+1) its warp w, after a WarpBarrier.
  std::vector<int32_t> seen_by;
  std::vector<size_t> hidden;  // places that are not seen by all

  void ShowAll() {
    for (const size_t place : hidden) seen_by[place] = 0;
    hidden.clear();
  }
  size_t Place(const void* address) const {
    return (reinterpret_cast<uintptr_t>(address) -
            reinterpret_cast<uintptr_t>(shared)) /
           kCopyBytes;
  }

  std::vector<int32_t> Order(int32_t count) {
    std::vector<int32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    if (schedule == Schedule::kBackward)
      std::reverse(order.begin(), order.end());
    if (schedule == Schedule::kRandom)
      std::shuffle(order.begin(), order.end(), random);
    return order;
  }
};

Machine& ThisMachine() {
  thread_local Machine machine;
  return machine;
}

Thread& Current() {
  Machine& machine = ThisMachine();
  return *machine.threads[machine.current];
}

// Of the current thread, before whatever it does with others or with memory.
void CheckAwaited() {
  Check(Current().awaited || !ThisMachine().shape.awaits,
        "a thread did not call AwaitEarlierKernels first");
}

void Enter(void*) {
  (*ThisMachine().body)();
  Thread& thread = Current();
  CheckAwaited();
  bool landed = thread.open.empty();
  for (const std::vector<Copy>& group : thread.groups)
    landed = landed && group.empty();
  Check(landed, "a thread left with copies in flight");
  thread.groups.clear();
  thread.wait = Wait::kDone;
  thread.doing = "(it left)";
  thread.fiber.Leave();
}

// Runs the warp until all its lanes wait for the block or are done.
void RunWarp(Machine* machine, int32_t first) {
  const std::vector<int32_t> order = machine->Order(kWarpSize);
  for (bool ran = true; ran;) {
    ran = false;
    for (const int32_t lane : order) {
      Thread& thread = *machine->threads[first + lane];
      if (thread.wait != Wait::kNone) continue;
      machine->current = first + lane;
      thread.fiber.Resume();
      ran = true;
    }
  }
  for (int32_t lane = 0; lane < kWarpSize; ++lane) {
    machine->current = first + lane;
    Check(machine->threads[first + lane]->wait != Wait::kWarp,
          "a lane waits for lanes of its warp that do not come");
  }
}

void RunBlock(Machine* machine) {
  const int32_t threads = machine->shape.threads;
  std::memset(machine->shared, 0xff, machine->shape.shared_bytes);
  machine->ShowAll();
  for (int32_t t = 0; t < threads; ++t) {
    machine->threads[t]->wait = Wait::kNone;
    machine->threads[t]->doing = "(it began)";
    machine->threads[t]->awaited = false;
    machine->threads[t]->fiber.Start(&Enter, nullptr);
  }
  for (;;) {
    for (const int32_t warp : machine->Order(threads / kWarpSize))
      RunWarp(machine, warp * kWarpSize);
    int32_t waiting = 0;
    for (int32_t t = 0; t < threads; ++t)
      waiting += machine->threads[t]->wait == Wait::kBlock ? 1 : 0;
    if (waiting == 0) return;
    Check(waiting == threads, "a barrier that some threads do not come to");
    for (int32_t t = 0; t < threads; ++t)
      machine->threads[t]->wait = Wait::kNone;
    machine->ShowAll();
  }
}

void Land(const std::vector<Copy>& group) {
  for (const Copy& copy : group) {
    if (copy.valid) {
      std::memcpy(copy.shared, copy.global, kCopyBytes);
    } else {
      std::memset(copy.shared, 0, kCopyBytes);
    }
  }
}

}  // namespace

void SetSchedule(Schedule schedule, uint32_t seed) {
  ThisMachine().schedule = schedule;
  ThisMachine().random.seed(seed);
}

void SetCopies(Copies copies) { ThisMachine().copies = copies; }

int Run(const Shape& shape, const std::function<void()>& body) {
  if (shape.blocks_x < 1 || shape.blocks_x > 0x7fffffff || shape.blocks_y < 1 ||
      shape.blocks_y > 65535 || shape.threads < 1 ||
      shape.threads > kMaxThreads || shape.threads % kWarpSize != 0 ||
      shape.shared_bytes > kMaxSharedBytes)
    return kInvalidConfiguration;
  Machine& machine = ThisMachine();
  while (static_cast<int32_t>(machine.threads.size()) < shape.threads)
    machine.threads.push_back(std::make_unique<Thread>());
  machine.shape = shape;
  machine.body = &body;
  void* shared = nullptr;  // of exactly its size, for AddressSanitizer
  if (posix_memalign(&shared, 128, std::max(shape.shared_bytes, 1)) != 0)
    std::abort();
  machine.shared = static_cast<char*>(shared);
  machine.seen_by.assign(shape.shared_bytes / kCopyBytes, 0);
  for (machine.block_y = 0; machine.block_y < shape.blocks_y;
       ++machine.block_y) {
    for (machine.block_x = 0; machine.block_x < shape.blocks_x;
         ++machine.block_x)
      RunBlock(&machine);
  }
  free(shared);
  machine.shared = nullptr;
  return 0;
}

int32_t ThreadIndex() { return ThisMachine().current; }
int32_t BlockThreads() { return ThisMachine().shape.threads; }
int32_t BlockX() { return static_cast<int32_t>(ThisMachine().block_x); }
int32_t BlockY() { return ThisMachine().block_y; }
char* SharedMemory() { return ThisMachine().shared; }

void AwaitEarlierKernels() { Current().awaited = true; }

void Barrier() {
  CheckAwaited();
  Thread& thread = Current();
  thread.wait = Wait::kBlock;
  thread.doing = "Barrier";
  thread.fiber.Leave();
}

void Together(const char* name, void* slot, void (*function)(void* const*)) {
  CheckAwaited();
  Machine& machine = ThisMachine();
  Thread& thread = Current();
  thread.slot = slot;
  thread.doing = name;
  thread.wait = Wait::kWarp;
  const int32_t first = machine.current / kWarpSize * kWarpSize;
  void* slots[kWarpSize];
  for (int32_t lane = 0; lane < kWarpSize; ++lane) {
    const Thread& other = *machine.threads[first + lane];
    if (other.wait == Wait::kNone) {  // not here yet
      thread.fiber.Leave();
      return;
    }
    // Nearly always the same literal; strcmp took a quarter of the time in
    // ASan.
    const bool same =
        other.wait == Wait::kWarp &&
        (other.doing == name || std::strcmp(other.doing, name) == 0);
    if (!same) {
      std::fprintf(stderr, "one lane is in %s, another in %s\n", name,
                   other.doing);
      Check(false, "a warp's lanes do different things");
    }
    slots[lane] = other.slot;
  }
  function(slots);
  for (int32_t lane = 0; lane < kWarpSize; ++lane)
    machine.threads[first + lane]->wait = Wait::kNone;
}

void WarpBarrier() {
  Together("WarpBarrier", nullptr, [](void* const*) {
    Machine& machine = ThisMachine();
    const int32_t warp = machine.current / kWarpSize;
    for (const size_t place : machine.hidden) {
      int32_t& by = machine.seen_by[place];
      if (by > 0 && (by - 1) / kWarpSize == warp) by = -(warp + 1);
    }
  });
}

void CopyAsync16(void* shared, const void* global, bool valid) {
  CheckAwaited();
  CheckAligned(shared, 16, "the target of CopyAsync16");
  if (valid) CheckAligned(global, 16, "the source of CopyAsync16");
  const Machine& machine = ThisMachine();
  const char* to = static_cast<char*>(shared);
  Check(to >= machine.shared &&
            to + 16 <= machine.shared + machine.shape.shared_bytes,
        "the target of CopyAsync16 is not in shared memory");
  const Copy copy = {shared, global, valid};
  if (machine.copies == Copies::kEarly) {
    Land({copy});
  } else {
    Current().open.push_back(copy);
  }
}

void CopyCommit() {
  Thread& thread = Current();
  thread.groups.push_back(std::move(thread.open));
  thread.open.clear();
}

void CopyWait(int32_t groups) {
  Thread& thread = Current();
  while (static_cast<int32_t>(thread.groups.size()) > groups) {
    Land(thread.groups.front());
    Machine& machine = ThisMachine();
    for (const Copy& copy : thread.groups.front()) {
      const size_t place = machine.Place(copy.shared);
      machine.seen_by[place] = machine.current + 1;
      machine.hidden.push_back(place);
    }
    thread.groups.pop_front();
  }
}

void Check(bool condition, const char* message) {
  if (condition) return;
  const Machine& machine = ThisMachine();
  std::fprintf(stderr, "emulation: block (%d,%d), thread %d: %s\n",
               static_cast<int>(machine.block_x), machine.block_y,
               machine.current, message);
  std::abort();
}

void CheckAligned(const void* address, int32_t bytes, const char* what) {
  CheckAwaited();
  if (reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
  std::fprintf(stderr, "%s is not aligned to %d\n", what, bytes);
  Check(false, "a misaligned address");
}

void CheckVisible(const void* address, const char* what, bool of_warp) {
  const Machine& machine = ThisMachine();
  const size_t place = machine.Place(address);
  const int32_t by =
      place < machine.seen_by.size() ? machine.seen_by[place] : 0;
  const int32_t mine = of_warp ? 0 : machine.current + 1;
  if (by == 0 || by == mine || by == -(machine.current / kWarpSize + 1)) return;
  std::fprintf(stderr, "%s of a copy with no barrier since its wait\n", what);
  Check(false, "a copy that this thread does not see yet");
}

}  // namespace emulation
}  // namespace encoderd
