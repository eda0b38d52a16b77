// Threads that help a pass while no other pass wants their cores.
//
// One Team for a process. It has as many cores as executors have joined it, at
// most those that it was made with. Each running pass has one, that of its
// thread; the others are lent to passes, op by op: a pass takes idle helpers
// before an op, to its share of the cores among the passes that can use help,
// and lets some go before the next as soon as it has more, or there are more
// passes and helpers than cores. Under load each core works alone; a text that
// is alone has all of them. What a helper computes has the bits that
// the pass's own thread would give it, so no clock decides about a result.
//
// Each thread of a pass has a part of an op, in slices. One that has computed
// its own takes slices from slower threads nearby, for example on cores that
// other programs use or that have a lower clock.
//
// A helper that has nothing to do looks for work for some 50 us, then sleeps.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_TEAM_H_
#define ENCODERD_ENGINE_DEVICE_CPU_TEAM_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "engine/device/cpu/aligned_buffer.h"

namespace encoderd {
namespace cpu {

class Team {
 public:
  // Slice `index` of `count` of part `part` of `parts`.
  struct Slice {
    int32_t part = 0;
    int32_t parts = 1;
    int32_t index = 0;
    int32_t count = 1;
  };
  // Computes a slice. scratch: the thread's own memory, which the slice before
  // may have used. Must not throw.
  using Share = absl::FunctionRef<void(const Slice& slice, void* scratch)>;

  // Starts cores - 1 threads, which sleep; fewer where the system gives no
  // more threads or memory.
  explicit Team(int32_t cores);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // bytes: of scratch memory, which ops of later passes need of each helper.
  // RESOURCE_EXHAUSTED where memory cannot be had.
  absl::Status Reserve(int64_t bytes);

  // An Executor, whose passes may run at any time from now on, until it leaves.
  void Join() { ++executors_; }
  void Leave() { --executors_; }

  // A pass on the calling thread, from its construction to its end.
  class Pass {
   public:
    explicit Pass(Team* team);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    // Before an op for which at most `most` threads are of use, 1 or more: how
    // many it may have.
    int32_t Threads(int32_t most);
    // Has `slices` slices of each of `parts` parts computed, and returns once
    // all are. The calling thread, which uses `scratch`, begins with part 0,
    // each helper with its own part; then each takes slices that others have
    // not begun. parts: at most what Threads returned.
    void Run(int32_t parts, int32_t slices, void* scratch, Share share);

   private:
    friend class Team;
    struct Op;

    std::atomic<int32_t>& NextOf(int32_t part);
    // Those slices of a part that no thread has begun.
    void ComputeRest(const Op& op, int32_t part, void* scratch);
    // Part `part`, then what is left of the parts after it.
    void Compute(const Op& op, int32_t part, void* scratch);

    Team* const team_;
    std::vector<int32_t> helpers_;  // that it has now
    bool wants_help_ = false;       // its last op had more than one part
    std::atomic<int32_t> next_{0};  // slice of part 0 to begin
  };

  int32_t cores() const { return std::min<int32_t>(cores_, executors_); }
  // For tests: running passes, and their helpers.
  int32_t passes() const { return passes_; }
  int32_t lent() const { return lent_; }

 private:
  // kAsleep: idle, and waking the thread takes a system call.
  enum class State : int32_t { kIdle, kAsleep, kPosted, kTaken, kStop };
  struct Job {
    Pass* pass = nullptr;
    const Pass::Op* op = nullptr;
    int32_t part = 0;
  };
  struct alignas(64) Helper {
    std::atomic<State> state{State::kIdle};
    std::atomic<int32_t> next{0};  // slice of its part to begin
    std::atomic<bool> lent{false};
    Job job;               // while posted or taken
    int64_t reserved = 0;  // bytes of scratch; while lent
    AlignedBuffer scratch;
    std::thread thread;

    bool Busy() const {
      const State now = state.load(std::memory_order_acquire);
      return now == State::kPosted || now == State::kTaken;
    }
  };

  void Work(Helper* helper);
  // Takes or lets go of helpers, so that `pass` has up to `most`.
  void Adjust(int32_t most, Pass* pass);
  void SetWantsHelp(bool wants, Pass* pass);
  void LetGo(Pass* pass);

  const int32_t cores_;
  std::vector<std::unique_ptr<Helper>> helpers_;
  std::atomic<int32_t> executors_{0};
  std::atomic<int32_t> passes_{0};
  std::atomic<int32_t> lent_{0};
  std::atomic<int32_t> wanting_{0};  // passes that can use help
};

// The process's own, of AvailableCores(); it lives as long as one has it.
std::shared_ptr<Team> SharedTeam();

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_TEAM_H_
