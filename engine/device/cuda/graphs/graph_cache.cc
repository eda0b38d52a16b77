#include "engine/device/cuda/graphs/graph_cache.h"

#include <algorithm>

namespace encoderd {
namespace cuda {

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

absl::StatusOr<OwnedGraph> CaptureOps(const RecordedOps& ops, Runtime* runtime,
                                      const OpStream& stream) {
  int code = runtime->BeginCapture(stream.stream);
  if (code != 0) return RuntimeError(runtime, code, "beginning a capture");
  const absl::Status status = RunOps(ops, runtime, stream);
  Graph captured = nullptr;
  code = runtime->EndCapture(stream.stream, &captured);
  OwnedGraph graph(runtime, captured);
  if (!status.ok()) return status;
  if (code != 0) return RuntimeError(runtime, code, "ending a capture");
  return graph;
}

}  // namespace cuda
}  // namespace encoderd
