// The graphs of one Executor, by the ops that they stand for.
//
// A list that is seen for the first time gets none: its plain run loads the
// kernels and libraries that a capture must find loaded. At the second time it
// is worth them. At most kMost lists are remembered; the one that was not seen
// for longest makes room. Not thread-safe.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_GRAPH_CACHE_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_GRAPH_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/device/cuda/graphs/recorded_ops.h"
#include "engine/device/cuda/host/memory.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

// A pass as graphs to launch one after another, at least one. A launch takes
// the host longer the more ops it has; so the first graph is short, and the
// card computes while the next is launched.
using PassGraphs = std::vector<OwnedGraph>;

// How many ops each graph of a pass has, in order: 12, then four times as many
// as before, and the last what is left. A launch takes the host a fifth to a
// seventh of the time that the ops take the card (H100, one text), so that a
// graph is on the stream before the one before it is done.
std::vector<int64_t> GraphSizes(int64_t ops);

class GraphCache {
 public:
  static constexpr size_t kMost = 64;

  struct Entry {
    RecordedOps ops;
    int64_t seen = 0;   // times, this one counted in
    PassGraphs graphs;  // none until they are trusted
  };

  // The entry of `ops`, made where there is none; valid until the next call.
  Entry* See(const RecordedOps& ops);
  void Clear() { entries_.clear(); }

 private:
  std::list<Entry> entries_;  // the last seen first
};

// Graphs of the ops. Nothing of them is done, and the stream is as before, also
// after an error.
absl::StatusOr<PassGraphs> CaptureOps(const RecordedOps& ops, Runtime* runtime,
                                      const OpStream& stream);

// Puts all of them on the stream, up to the first that fails: its code, or 0.
int LaunchGraphs(const PassGraphs& graphs, Runtime* runtime, Stream stream);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_GRAPH_CACHE_H_
