#include "server/rpc/reflection_limit.h"

#include "absl/strings/match.h"
#include "google/protobuf/message.h"

namespace encoderd {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

class EmptyLargeRequests final : public grpc::experimental::Interceptor {
 public:
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::POST_RECV_MESSAGE)) {
      // Null after the last.
      auto* const request =
          static_cast<google::protobuf::Message*>(methods->GetRecvMessage());
      if (request != nullptr &&
          request->ByteSizeLong() > kMaxReflectionRequestBytes) {
        request->Clear();
      }
    }
    methods->Proceed();
  }
};

}  // namespace

grpc::experimental::Interceptor* ReflectionLimit::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  return absl::StartsWith(info->method(), "/grpc.reflection.")
             ? new EmptyLargeRequests()
             : nullptr;
}

}  // namespace encoderd
