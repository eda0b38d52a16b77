#include "server/rpc/open_streams.h"

#include <utility>
#include <vector>

namespace encoderd {

void OpenStreams::Add(std::shared_ptr<OpenStream> stream) {
  OpenStream* const added = stream.get();
  bool draining = false;
  {
    absl::MutexLock lock(&mu_);
    streams_[added] = stream;
    draining = draining_;
  }
  if (draining) added->Drain();
}

void OpenStreams::Remove(OpenStream* stream) {
  std::shared_ptr<OpenStream> removed;  // ends without the lock
  absl::MutexLock lock(&mu_);
  const auto at = streams_.find(stream);
  if (at == streams_.end()) return;
  removed = std::move(at->second);
  streams_.erase(at);
}

void OpenStreams::DrainAll() {
  std::vector<std::shared_ptr<OpenStream>> streams;
  {
    absl::MutexLock lock(&mu_);
    draining_ = true;
    for (const auto& entry : streams_) streams.push_back(entry.second);
  }
  for (const auto& stream : streams) stream->Drain();
}

int64_t OpenStreams::count() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int64_t>(streams_.size());
}

}  // namespace encoderd
