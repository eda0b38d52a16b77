// The calls that are open now, so that leaving can reach them: an idle stream
// would hold it up for ever, and who waits when the time is up is told.
// Thread-safe.
#ifndef ENCODERD_SERVER_RPC_OPEN_CALLS_H_
#define ENCODERD_SERVER_RPC_OPEN_CALLS_H_

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace encoderd {

// UNAVAILABLE, DRAINING: the answer to what was accepted and took too long.
absl::Status GivenUpError();

class OpenCall {
 public:
  virtual ~OpenCall() = default;
  // Takes no further request, answers those it has, then ends.
  virtual void Drain() = 0;
  // After Drain: answers what is not answered yet with DRAINING, without
  // waiting for whoever works on it, then ends. More than once does nothing.
  virtual void GiveUp() = 0;
};

class OpenCalls {
 public:
  // A call added after DrainAll or GiveUpAll is told at once.
  void Add(std::shared_ptr<OpenCall> call);
  void Remove(OpenCall* call);
  void DrainAll();
  void GiveUpAll();
  int64_t count() const;

 private:
  enum class Told { kNothing, kDrain, kGiveUp };

  void Tell(Told told);

  mutable absl::Mutex mu_;
  Told told_ ABSL_GUARDED_BY(mu_) = Told::kNothing;
  std::unordered_map<OpenCall*, std::shared_ptr<OpenCall>> calls_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_OPEN_CALLS_H_
