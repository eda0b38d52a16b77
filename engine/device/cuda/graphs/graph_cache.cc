#include "engine/device/cuda/graphs/graph_cache.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace encoderd {
namespace cuda {

std::vector<int64_t> GraphSizes(int64_t ops) {
  std::vector<int64_t> sizes;
  for (int64_t next = 12; ops > 0 || sizes.empty(); next *= 4) {
    // The last takes along what would be a short one after it.
    sizes.push_back(ops <= next + next / 2 ? ops : next);
    ops -= sizes.back();
  }
  return sizes;
}

GraphCache::Entry* GraphCache::See(const RecordedOps& ops) {
  auto found =
      std::find_if(entries_.begin(), entries_.end(),
                   [&](const Entry& entry) { return entry.ops == ops; });
  if (found == entries_.end()) {
    if (entries_.size() == kMost) entries_.pop_back();
    found = entries_.emplace(entries_.end());
    found->ops = ops;
  }
  entries_.splice(entries_.begin(), entries_, found);
  ++found->seen;
  return &*found;
}

absl::StatusOr<PassGraphs> CaptureOps(const RecordedOps& ops, Runtime* runtime,
                                      const OpStream& stream) {
  PassGraphs graphs;
  auto next = ops.begin();
  for (const int64_t size : GraphSizes(static_cast<int64_t>(ops.size()))) {
    const RecordedOps part(next, next + size);
    next += size;
    absl::StatusOr<OwnedGraph> graph = Capture(
        runtime, stream.stream, [&] { return RunOps(part, runtime, stream); });
    if (!graph.ok()) return graph.status();
    graphs.push_back(*std::move(graph));
  }
  return graphs;
}

int LaunchGraphs(const PassGraphs& graphs, Runtime* runtime, Stream stream) {
  for (const OwnedGraph& graph : graphs) {
    const int code = runtime->LaunchGraph(graph.get(), stream);
    if (code != 0) return code;
  }
  return 0;
}

}  // namespace cuda
}  // namespace encoderd
