#include "server/rpc/reflection_limit.h"

#include "absl/strings/match.h"
#include "google/protobuf/message.h"

namespace encoderd {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

using google::protobuf::Message;

class Limit final : public grpc::experimental::Interceptor {
 public:
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      answer_ = static_cast<const Message*>(methods->GetSendMessage());
    }
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::POST_RECV_MESSAGE)) {
      // Null after the last.
      auto* const request = static_cast<Message*>(methods->GetRecvMessage());
      if (request != nullptr) BeforeAnswering(request);
    }
    methods->Proceed();
  }

 private:
  void BeforeAnswering(Message* request) {
    if (request->ByteSizeLong() > kMaxReflectionRequestBytes) request->Clear();
    // The service's own variable, which it fills again; it waits for this
    // request meanwhile.
    if (answer_ != nullptr) const_cast<Message*>(answer_)->Clear();
  }

  const Message* answer_ = nullptr;  // the last one
};

}  // namespace

grpc::experimental::Interceptor* ReflectionLimit::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  return absl::StartsWith(info->method(), "/grpc.reflection.") ? new Limit()
                                                               : nullptr;
}

}  // namespace encoderd
