// The server without its process: ports, models, life cycle. main (run.cc)
// adds flags, signals, what libraries need (rpc/libraries.h) and the exit code;
// tests start one in their own process.
//
//   Start   ports answer, health reports NOT_SERVING, calls get LOADING
//   Load    model and warm-up, then SERVING
//   Drain   NOT_SERVING, no new work, waits for accepted work, ports close
#ifndef ENCODERD_SERVER_SERVER_H_
#define ENCODERD_SERVER_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/model.h"
#include "grpcpp/server.h"
#include "server/api/model_registry.h"
#include "server/base/version.h"
#include "server/config.h"
#include "server/observe/http.h"
#include "server/observe/metrics.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/health.h"
#include "server/rpc/serving_state.h"
#include "server/security/secrets.h"
#include "server/trace/tracer.h"

namespace encoderd {

// Model::Load, or a fake of a test.
using ModelLoader = std::function<absl::StatusOr<std::shared_ptr<const Model>>(
    const std::string& folder, const ModelOptions& options)>;

// Start, Load and Drain are called by one thread at a time; the rest is
// thread-safe.
class Server {
 public:
  // Returns once the ports answer, before any model is read. on_device_lost is
  // called from a pipeline thread and must not block. build: for the metrics.
  // Errors: UNAVAILABLE, an address that cannot be bound; INVALID_ARGUMENT, an
  // invalid certificate, key or token file; RESOURCE_EXHAUSTED, out of
  // descriptors; INTERNAL with the message of an exception, for example of a
  // thread that cannot be started.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerConfig& config, std::function<void()> on_device_lost,
      const BuildInfo& build = {});
  // Drains without waiting, if Drain was not called.
  ~Server();

  // Loads every model, one after the other, and warms it up; SERVING when it
  // returns OK. The first error ends it and names the model: that of the
  // loader; DATA_LOSS if the warm-up computes values that are not finite;
  // INTERNAL with the message of an exception. memory_limit_bytes: of this
  // process (engine/base/cgroup.h), for a warning if it is too small.
  absl::Status Load(const ModelLoader& loader, int64_t memory_limit_bytes);

  // For a shutdown while Load still runs: true if no call was admitted so far
  // and none will be, so that nothing is lost by ending at once.
  bool AbandonLoading() { return state_.AbandonLoading(); }

  // Reloads certificates and tokens, now or soon on another thread.
  void ReloadSecrets() { secrets_->Reload(); }
  void ReloadSecretsSoon() { secrets_->ReloadSoon(); }

  // Shuts down, see config.drain_*. True: every accepted call was answered.
  // False: the time was up, and waiting calls got DRAINING; a device that hangs
  // still blocks the destructor.
  bool Drain();

  int grpc_port() const { return grpc_port_; }
  int http_port() const { return http_port_; }  // 0: no HTTP
  bool serving() const { return health_.serving(); }
  // The answer of /metrics, sampled now.
  std::string MetricsText();
  int64_t in_flight() const { return state_.in_flight(); }
  // Without calls that were refused before any work.
  int64_t unanswered() const { return state_.unanswered(); }
  int64_t connections() const { return acceptor_->connections(); }
  int64_t streams() const { return streams_.count(); }

 private:
  Server(const ServerConfig& config, std::function<void()> on_device_lost,
         const BuildInfo& build, std::unique_ptr<Secrets> secrets);
  absl::Status Listen();
  // A model that is being loaded.
  struct Loaded {
    const ServedModel* served;
    size_t sessions;
    int64_t scratch_bytes;
    absl::Duration took;
  };
  absl::Status LoadAll(const ModelLoader& loader, int64_t memory_limit_bytes);
  absl::StatusOr<Loaded> LoadModel(const ModelSource& source,
                                   const ModelLoader& loader);
  static void LogServing(const Loaded& loaded);
  void DeviceLost();
  bool WaitIdle(absl::Duration patience) const;
  // Waits until all callers that were notified of the shutdown have left
  // (true), or none leaves any more (false).
  bool WaitForLastWords(absl::Time last) const;
  ServerState StateNow() const;

  const ServerConfig config_;
  const std::function<void()> on_device_lost_;
  // In this order: each uses those above it; the gRPC server ends first, then
  // the pipelines.
  const std::unique_ptr<Secrets> secrets_;
  Metrics metrics_;
  const std::unique_ptr<Tracer> tracer_;  // null: no tracing
  ServingState state_;
  OpenCalls calls_;
  OpenCalls held_;
  OpenCalls streams_;
  UnreadAnswers unread_;
  CallEnvironment environment_;
  HealthService health_;
  ModelRegistry models_;  // its pipelines may still work on abandoned calls,
                          // and tell health_ of a lost device
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<HttpServer> http_;
  int grpc_port_ = 0;
  int http_port_ = 0;
  std::atomic<bool> leaving_{false};  // Drain has begun
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_SERVER_H_
