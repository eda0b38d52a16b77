// The open calls, so that draining can reach them: an idle stream would delay
// it forever, and callers that still wait at the end get an answer.
// Thread-safe.
#ifndef ENCODERD_SERVER_RPC_OPEN_CALLS_H_
#define ENCODERD_SERVER_RPC_OPEN_CALLS_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace encoderd {

// UNAVAILABLE, DRAINING: the answer to accepted work that took too long.
absl::Status GivenUpError();

class OpenCall {
 public:
  virtual ~OpenCall() = default;
  // Accepts no further requests, answers those it has, then ends.
  virtual void Drain() = 0;
  // After Drain: answers the rest with DRAINING, without waiting for its
  // results, then ends. Repeated calls do nothing.
  virtual void GiveUp() = 0;
};

class OpenCalls {
 public:
  // How many were open before. The call is added if they are fewer than
  // `limit`, and after DrainAll or GiveUpAll notified at once.
  int64_t Add(std::shared_ptr<OpenCall> call,
              int64_t limit = std::numeric_limits<int64_t>::max());
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
