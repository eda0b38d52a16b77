// How the recorded passes of one Executor are put on its stream: plainly, by
// launches that overlap, or by a CUDA graph. A faster way serves once it has
// given, in cleared memory, the very bits of a plain run: a graph of the same
// pass, overlaps of the first pass that no graph serves. Where it fails or
// differs it is left for good, and a note says so.
//
// Thread rule: as Executor.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_FAST_PASSES_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_FAST_PASSES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/device/cuda/graphs/graph_cache.h"
#include "engine/device/cuda/graphs/recorded_ops.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

// What a pass writes, on the card, and where its results are on the host.
struct PassMemory {
  struct Piece {
    void* data = nullptr;
    int64_t bytes = 0;
  };
  std::vector<Piece> scratch;
  Piece batch;   // if its ops copy it; all zeros is an empty batch
  Piece output;  // where results are copied from; none: ops write to staging
  char* staging = nullptr;  // pinned
};

class FastPasses {
 public:
  // graphs, overlaps: whether these ways may serve at all.
  FastPasses(Runtime* runtime, bool graphs, bool overlaps);

  bool graphs() const { return graphs_on_; }

  // Puts the pass on the stream; stream.overlaps is not looked at. repeats: the
  // same list will come again, so that graphs are worth their making.
  absl::Status Run(const RecordedOps& ops, bool repeats,
                   const OpStream& stream);
  // After a Run that is done, with its results, `bytes` of them: tries the next
  // faster way. Only an error that loses the device is returned.
  absl::Status TryFaster(const RecordedOps& ops, const void* results,
                         int64_t bytes, const PassMemory& memory,
                         const OpStream& stream);
  // What was found out since the last call; mostly empty.
  std::string TakeNote() { return std::exchange(note_, {}); }

 private:
  // OK where `launch` gives the results' bits in memory full of NaNs, or
  // zeros for a batch that its ops bring; DATA_LOSS: it lost the device.
  absl::Status Replay(const std::function<absl::Status()>& launch,
                      const void* results, int64_t bytes,
                      const PassMemory& memory, const OpStream& stream);
  absl::Status TryGraph(const void* results, int64_t bytes,
                        const PassMemory& memory, const OpStream& stream);
  void LeaveGraphs(const absl::Status& why);
  void LeaveOverlaps(const absl::Status& why);
  void Note(const std::string& text);

  Runtime* const runtime_;
  bool graphs_on_;
  bool overlaps_on_;
  bool overlaps_proved_ = false;
  GraphCache graphs_;
  GraphCache::Entry* entry_ = nullptr;  // of the pass that runs; null: none
  std::string note_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_FAST_PASSES_H_
