#include "server/rpc/grpc_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "grpc/compression.h"
#include "grpc/grpc.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/impl/server_builder_plugin.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "server/base/log.h"
#include "server/net/listen_socket.h"
#include "server/rpc/reflection_limit.h"
#include "server/rpc/tls_credentials.h"

namespace encoderd {
namespace {

constexpr int kMaxLibraryThreads = 32;

// The reflection library adds its plugin to every builder as soon as it is
// linked; this takes it out again.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*
                         plugins) override {
    plugins->erase(
        std::remove_if(plugins->begin(), plugins->end(),
                       [](const std::unique_ptr<grpc::ServerBuilderPlugin>& p) {
                         return p->name() == "proto_server_reflection";
                       }),
        plugins->end());
  }
};

// Keeps descriptors from running out: each connection uses two, the rest of the
// process some dozens.
int ConnectionCap(int wanted) {
  constexpr int64_t kReserved = 100;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const int64_t room =
      (static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, 1 << 30)) -
       kReserved) /
      2;
  if (room >= wanted) return wanted;
  const int cap = static_cast<int>(std::max<int64_t>(room, 8));
  Log(LogLevel::kWarning, "fewer_connections",
      LogFields()
          .Add("max_connections", wanted)
          .Add("used", cap)
          .Add("file_descriptors", static_cast<int64_t>(limit.rlim_cur))
          .Add("message",
               absl::StrCat("raise the limit of file descriptors to ",
                            2 * int64_t{wanted} + kReserved,
                            " (systemd: LimitNOFILE=, a container: --ulimit "
                            "nofile=), or lower --max_connections")));
  return cap;
}

// 0: gRPC's default, no limit.
void SetTime(const char* argument, absl::Duration time,
             grpc::ServerBuilder* builder) {
  if (time == absl::ZeroDuration()) return;
  builder->AddChannelArgument(
      argument, static_cast<int>(absl::ToInt64Milliseconds(time)));
}

void SetBounds(const GrpcServerOptions& options, grpc::ServerBuilder* builder) {
  // A message at the limit still fits when gRPC counts its own few bytes.
  builder->SetMaxReceiveMessageSize(
      static_cast<int>(options.max_message_bytes));
  builder->SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes) +
                                 1024);
  grpc::ResourceQuota quota("encoderd");
  quota.Resize(static_cast<size_t>(options.max_connection_memory_bytes));
  // Of the library's own services (reflection): each open call blocks one.
  quota.SetMaxThreads(kMaxLibraryThreads);
  builder->SetResourceQuota(quota);

  // A small compressed message must not become a large one in memory.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);

  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              options.max_streams_per_connection);
  // A peer that sends nothing is closed before it has spoken HTTP/2.
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10000);
  // A dead peer is noticed within a minute; one that pings too often gets
  // too_many_pings.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 40000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 3);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16384);
  // Both send GOAWAY and let open calls end normally.
  SetTime(GRPC_ARG_MAX_CONNECTION_IDLE_MS, options.max_connection_idle,
          builder);
  SetTime(GRPC_ARG_MAX_CONNECTION_AGE_MS, options.max_connection_age, builder);
}

}  // namespace

absl::StatusOr<ListeningServer> StartGrpcServer(
    const GrpcServerOptions& options, const Secrets* secrets,
    const std::vector<grpc::Service*>& services) {
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  if (options.reflection) {
    std::vector<
        std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
        limits;
    limits.push_back(std::make_unique<ReflectionLimit>());
    builder.experimental().SetInterceptorCreators(std::move(limits));
  } else {
    builder.SetOption(std::make_unique<WithoutReflection>());
  }
  SetBounds(options, &builder);
  const auto socket = Listen(options.listen);
  if (!socket.ok()) return socket.status();
  ListeningServer listening;
  listening.port = socket->port;
  using FromFd = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  const int cap = ConnectionCap(options.max_connections);
  listening.acceptor = std::make_unique<Acceptor>(
      socket->fd, cap,
      options.max_connections_per_address > 0
          ? options.max_connections_per_address
          : std::max(cap / 2, 1),
      builder.experimental().AddExternalConnectionAcceptor(
          FromFd::FROM_FD, options.tls ? NewTlsCredentials(secrets)
                                       : grpc::InsecureServerCredentials()));
  for (grpc::Service* service : services) builder.RegisterService(service);
  listening.server = builder.BuildAndStart();
  if (listening.server == nullptr) {
    return absl::InternalError("gRPC did not start its server");
  }
  const absl::Status started = listening.acceptor->Start();
  if (!started.ok()) return started;
  return listening;
}

}  // namespace encoderd
