#include "engine/device/cuda/graphs/graph_cache.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace encoderd {
namespace cuda {
namespace {

// Ops of the first graph, and how many times as many a next one has: an op
// takes the card some six times as long as its launch takes the host.
constexpr int64_t kFirstOps = 12;
constexpr int64_t kGrowth = 4;

}  // namespace

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
  int64_t most = kFirstOps;
  do {
    const int64_t left = ops.end() - next;
    // The last one takes what would be a short one after it.
    const int64_t count = left < 2 * most ? left : most;
    const RecordedOps part(next, next + count);
    absl::StatusOr<OwnedGraph> graph = Capture(
        runtime, stream.stream, [&] { return RunOps(part, runtime, stream); });
    if (!graph.ok()) return graph.status();
    graphs.push_back(*std::move(graph));
    next += count;
    most *= kGrowth;
  } while (next != ops.end());
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
