// gRPC's context of a call, for those who may outlive it: after Over nothing
// touches it any more. Thread-safe.
#ifndef ENCODERD_SERVER_RPC_CALL_CONTEXT_H_
#define ENCODERD_SERVER_RPC_CALL_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/server_context.h"

namespace encoderd {

class CallContext {
 public:
  explicit CallContext(grpc::CallbackServerContext* context)
      : context_(context), caller_(std::hash<std::string>()(context->peer())) {}

  // Only while the call is not over, which the caller of this knows.
  grpc::CallbackServerContext* operator->() const { return context_; }
  // The same for all calls of one connection.
  uint64_t caller() const { return caller_; }

  // Resets the call, unless it is over.
  void Cancel() {
    absl::MutexLock lock(&mu_);
    if (!over_) context_->TryCancel();
  }
  // From OnDone: the context is about to go.
  void Over() {
    absl::MutexLock lock(&mu_);
    over_ = true;
  }

 private:
  grpc::CallbackServerContext* const context_;
  const uint64_t caller_;
  absl::Mutex mu_;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_CALL_CONTEXT_H_
