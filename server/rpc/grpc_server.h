// gRPC's server with every limit set: message size, memory of all connections,
// streams and keepalive per connection, no compression; TLS if configured.
#ifndef ENCODERD_SERVER_RPC_GRPC_SERVER_H_
#define ENCODERD_SERVER_RPC_GRPC_SERVER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server.h"
#include "server/config.h"
#include "server/rpc/acceptor.h"
#include "server/security/secrets.h"

namespace encoderd {

struct ListeningServer {
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Acceptor> acceptor;  // to be destroyed first
  int port = 0;                        // the bound port
};

// The services and `secrets` outlive the server. UNAVAILABLE if the address
// cannot be bound, also if another process has the port: two servers never
// share one. Other errors and exceptions as for Acceptor::Start.
absl::StatusOr<ListeningServer> StartGrpcServer(
    const ServerConfig& config, const Secrets* secrets,
    const std::vector<grpc::Service*>& services);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_GRPC_SERVER_H_
