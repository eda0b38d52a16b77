// gRPC's server with every limit set: message size, memory of all connections,
// streams and keepalive per connection, no compression; TLS if configured.
#ifndef ENCODERD_SERVER_RPC_GRPC_SERVER_H_
#define ENCODERD_SERVER_RPC_GRPC_SERVER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server.h"
#include "server/net/host_port.h"
#include "server/rpc/acceptor.h"
#include "server/security/secrets.h"

namespace encoderd {

// Of ServerConfig, which has units and costs.
struct GrpcServerOptions {
  HostPort listen;
  bool tls = false;
  bool reflection = true;
  int64_t max_message_bytes = 0;
  int64_t max_connection_memory_bytes = 0;
  int max_connections = 0;
  int max_connections_per_address = 0;  // 0: half of all
  int max_streams_per_connection = 0;
  absl::Duration max_connection_idle;  // 0: no limit
  absl::Duration max_connection_age;   // 0: no limit
};

struct ListeningServer {
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Acceptor> acceptor;  // to be destroyed first
  int port = 0;                        // the bound port
};

// The services and `secrets` outlive the server. UNAVAILABLE if the address
// cannot be bound, also if another process has the port: two servers never
// share one. Other errors and exceptions as for Acceptor::Start.
absl::StatusOr<ListeningServer> StartGrpcServer(
    const GrpcServerOptions& options, const Secrets* secrets,
    const std::vector<grpc::Service*>& services);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_GRPC_SERVER_H_
