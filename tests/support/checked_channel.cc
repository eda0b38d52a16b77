#include "tests/support/checked_channel.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/client_interceptor.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

// What gRPC says without us, here or at the server.
constexpr struct {
  grpc::StatusCode code;
  absl::string_view words;
} kGrpcsOwn[] = {
    {grpc::StatusCode::CANCELLED, ""},  // the caller's own wish
    {grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"},
    {grpc::StatusCode::UNIMPLEMENTED, ""},  // no such method; compressed
    {grpc::StatusCode::RESOURCE_EXHAUSTED, "larger than max"},
    {grpc::StatusCode::UNAVAILABLE, "failed to connect"},
    {grpc::StatusCode::UNAVAILABLE, "Socket closed"},
};

bool IsGrpcsOwn(const grpc::Status& status) {
  if (!status.error_details().empty()) return false;
  for (const auto& [code, words] : kGrpcsOwn) {
    if (status.error_code() == code &&
        absl::StrContains(status.error_message(), words)) {
      return true;
    }
  }
  return false;
}

class ErrorReader final : public Interceptor {
 public:
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::POST_RECV_STATUS)) {
      const grpc::Status& status = *methods->GetRecvStatus();
      if (!status.ok() && !IsGrpcsOwn(status)) ReadError(status);
    }
    methods->Proceed();
  }
};

class ErrorReaders final : public ClientInterceptorFactoryInterface {
 public:
  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    return new ErrorReader;
  }
};

}  // namespace

std::shared_ptr<grpc::Channel> NewCheckedChannel(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const grpc::ChannelArguments& arguments) {
  std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>> readers;
  readers.push_back(std::make_unique<ErrorReaders>());
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      address, credentials, arguments, std::move(readers));
}

}  // namespace encoderd
