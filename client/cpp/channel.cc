#include "client/cpp/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/client_interceptor.h>
#include <grpcpp/support/interceptor.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/access.h"
#include "client/cpp/client_settings.h"
#include "client/cpp/handshake.h"
#include "client/cpp/loopback.h"

namespace encoderd::client {
namespace {

using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

// What all calls of a channel share.
struct Shared {
  std::string authorization;  // empty: none
  std::optional<bool> tls;    // unset: not known
  std::string target;
};

class CallInterceptor : public Interceptor {
 public:
  explicit CallInterceptor(std::shared_ptr<const Shared> shared)
      : shared_(std::move(shared)) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_SEND_INITIAL_METADATA) &&
        !shared_->authorization.empty()) {
      methods->GetSendInitialMetadata()->emplace("authorization",
                                                 shared_->authorization);
    }
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::POST_RECV_STATUS)) {
      grpc::Status* status = methods->GetRecvStatus();
      *status = ExplainHandshake(*status, shared_->tls, shared_->target);
    }
    methods->Proceed();
  }

 private:
  const std::shared_ptr<const Shared> shared_;
};

class InterceptorFactory
    : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  InterceptorFactory(const Access& access, const std::string& target) {
    Shared shared;
    if (!access.token.empty()) {
      shared.authorization = absl::StrCat("Bearer ", access.token);
    }
    shared.tls = access.tls;
    shared.target = target;
    shared_ = std::make_shared<const Shared>(std::move(shared));
  }

  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    return new CallInterceptor(shared_);  // gRPC takes ownership
  }

 private:
  std::shared_ptr<const Shared> shared_;
};

}  // namespace

int RetryBufferBytes(const ClientOptions& options) {
  // Of a service config of the caller's: gRPC alone sends requests again.
  constexpr int64_t kOwnConfig = 16 << 20;
  constexpr int64_t kMost = std::numeric_limits<int>::max() / 2;
  return static_cast<int>(
      std::max(options.service_config_json.empty() ? settings::kRetryBufferBytes
                                                   : kOwnConfig,
               2 * std::min(options.bytes_per_call, kMost / 2)));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const std::string& target, const ClientOptions& options,
    grpc::ChannelArguments arguments) {
  const auto access = ReadAccess(target, options);
  if (!access.ok()) return access.status();
  // A proxy of the environment is another machine, and cannot reach this one.
  if (IsLoopback(target)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!options.server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.server_name);
  }
  std::vector<
      std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
      factories;
  factories.push_back(std::make_unique<InterceptorFactory>(*access, target));
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      target, access->credentials, arguments, std::move(factories));
}

}  // namespace encoderd::client
