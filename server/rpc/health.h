// grpc.health.v1. Three names with one answer: "" (the server),
// "encoderd.v1.Encoder" and "readiness"; NOT_SERVING from the first moment
// until SetServing(true).
//
// Replaces gRPC's own service, which reports SERVING until told otherwise, and
// whose open Watch calls delay a shutdown. Takes raw bytes, like the service
// (service.h), to bound memory: the cost of parsing is counted first, and a
// request has at most kMaxHealthRequest bytes. Thread-safe.
#ifndef ENCODERD_SERVER_RPC_HEALTH_H_
#define ENCODERD_SERVER_RPC_HEALTH_H_

#include <cstdint>
#include <unordered_set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/security/secrets.h"

namespace encoderd {

// A request is the name of a service.
inline constexpr int64_t kMaxHealthRequest = 4096;

class HealthService final
    : public grpc::health::v1::Health::WithRawCallbackMethod_Check<
          grpc::health::v1::Health::WithRawCallbackMethod_Watch<
              grpc::health::v1::Health::Service>> {
 public:
  // `secrets`: callers need one of its tokens; null: none. max_watches: open
  // ones; beyond it RESOURCE_EXHAUSTED, QUEUE_FULL.
  HealthService(const Secrets* secrets, int64_t max_watches)
      : secrets_(secrets), max_watches_(max_watches) {}
  ~HealthService() override;

  // Notifies all open Watch calls.
  void SetServing(bool serving);
  bool serving() const;

  // Ends all Watch calls, so that the server can shut down; later ones end
  // after their first answer.
  void EndWatches();
  int64_t watches() const;  // open now

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override;

 private:
  class Watcher;
  friend class Watcher;

  void Remove(Watcher* watcher);

  const Secrets* const secrets_;
  const int64_t max_watches_;
  mutable absl::Mutex mu_;
  bool serving_ ABSL_GUARDED_BY(mu_) = false;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::unordered_set<Watcher*> watchers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_HEALTH_H_
