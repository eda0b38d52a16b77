// A card's blocks, warps and threads on the host, for tests of kernels.
//
// Run takes a block after another on the calling thread; a block's threads are
// fibers that run until they come to a barrier or to something that a warp does
// together. What a card leaves undefined ends the process with a message: a
// warp's lanes in different operations, a thread that left before the others'
// barrier, an address that is not aligned. Shared memory begins as NaNs, and
// asynchronous copies land only when they are waited for, so a missing wait
// gives wrong numbers, or, on demand, at once. What a thread waited for is
// another thread's to read only after a barrier of both. Warps take turns in an
// order that SetSchedule changes: a result that changes with either had a race.
//
// Thread rule: any number of threads, each for itself.
#ifndef ENCODERD_TESTS_SUPPORT_CUDA_EMULATION_H_
#define ENCODERD_TESTS_SUPPORT_CUDA_EMULATION_H_

#include <cstdint>
#include <functional>

namespace encoderd {
namespace emulation {

enum class Schedule { kForward, kBackward, kRandom };

// The order of warps, and of lanes within one, for Runs of this thread.
void SetSchedule(Schedule schedule, uint32_t seed = 0);

// When asynchronous copies of this thread's Runs land: as late as they may, or
// as early.
enum class Copies { kLate, kEarly };
void SetCopies(Copies copies);

struct Shape {
  int64_t blocks_x = 1;
  int32_t blocks_y = 1;
  int32_t threads = 1;
  int32_t shared_bytes = 0;
  // Kernels: each thread must call AwaitEarlierKernels before it leaves, waits,
  // copies or touches vectors, or the process ends.
  bool awaits = false;
};

// body() once for every thread of every block. 0, or the code of CUDA's
// "invalid configuration" (9) for a shape that no card takes.
int Run(const Shape& shape, const std::function<void()>& body);

// Of the thread that body runs as.
int32_t ThreadIndex();
int32_t BlockThreads();
int32_t BlockX();
int32_t BlockY();
char* SharedMemory();
void Barrier();
void WarpBarrier();

void AwaitEarlierKernels();

// What the 32 lanes of a warp do together: once all have come with the same
// `name`, function(slots) runs once, slots[l] being lane l's.
void Together(const char* name, void* slot, void (*function)(void* const*));

// The asynchronous copies of a thread.
void CopyAsync16(void* shared, const void* global, bool valid);
void CopyCommit();
void CopyWait(int32_t groups);

// Ends the process unless `condition`; tells block and thread.
void Check(bool condition, const char* message);
void CheckAligned(const void* address, int32_t bytes, const char* what);
// Of 16 bytes, if in shared memory: none is a copy that its thread waited for,
// but no barrier showed to this one (of_warp: to this thread's whole warp).
void CheckVisible(const void* address, const char* what, bool of_warp = false);

}  // namespace emulation
}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_CUDA_EMULATION_H_
