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

#include "absl/status/statusor.h"
#include "engine/device/cuda/graphs/recorded_ops.h"
#include "engine/device/cuda/host/memory.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

class GraphCache {
 public:
  static constexpr size_t kMost = 64;

  struct Entry {
    RecordedOps ops;
    int64_t seen = 0;  // times, this one counted in
    OwnedGraph graph;  // once it is trusted
  };

  // The entry of `ops`, made where there is none; valid until the next call.
  Entry* See(const RecordedOps& ops);
  void Clear() { entries_.clear(); }

 private:
  std::list<Entry> entries_;  // the last seen first
};

// A graph of the ops. Nothing of them is done, and the stream is as before,
// also after an error.
absl::StatusOr<OwnedGraph> CaptureOps(const RecordedOps& ops, Runtime* runtime,
                                      const OpStream& stream);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_GRAPH_CACHE_H_
