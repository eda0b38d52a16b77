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
  return Capture(runtime, stream.stream,
                 [&] { return RunOps(ops, runtime, stream); });
}

}  // namespace cuda
}  // namespace encoderd
