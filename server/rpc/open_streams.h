// The streams that are open now, so that leaving can end them: an idle one
// would hold it up for ever. Thread-safe.
#ifndef ENCODERD_SERVER_RPC_OPEN_STREAMS_H_
#define ENCODERD_SERVER_RPC_OPEN_STREAMS_H_

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace encoderd {

class OpenStream {
 public:
  virtual ~OpenStream() = default;
  // Takes no further request, answers those it has, then ends.
  virtual void Drain() = 0;
};

class OpenStreams {
 public:
  // A stream added after DrainAll is drained at once.
  void Add(std::shared_ptr<OpenStream> stream);
  void Remove(OpenStream* stream);
  void DrainAll();
  int64_t count() const;

 private:
  mutable absl::Mutex mu_;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  std::unordered_map<OpenStream*, std::shared_ptr<OpenStream>> streams_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_OPEN_STREAMS_H_
