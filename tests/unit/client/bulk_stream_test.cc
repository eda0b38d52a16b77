#include "client/cpp/bulk_stream.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_interceptor.h>
#include <grpcpp/support/interceptor.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/support/held_port.h"
#include "tests/support/patience.h"

namespace encoderd::client {
namespace {

using encoderd::testing::FakeEncoderService;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

// Holds each message back from gRPC until the test calls Proceed() of *held,
// which the thread that writes sets.
class MessageHolder : public Interceptor {
 public:
  explicit MessageHolder(InterceptorBatchMethods** held) : held_(held) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      *held_ = methods;
    } else {
      methods->Proceed();
    }
  }

 private:
  InterceptorBatchMethods** const held_;
};

class MessageHolderFactory
    : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit MessageHolderFactory(InterceptorBatchMethods** held) : held_(held) {}

  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    return new MessageHolder(held_);  // gRPC takes ownership
  }

 private:
  InterceptorBatchMethods** const held_;
};

TEST(BulkStreamTest, SendsARequestThatItsOwnerHasChangedSince) {
  FakeEncoderService service;
  InterceptorBatchMethods* held = nullptr;
  std::vector<
      std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
      factories;
  factories.push_back(std::make_unique<MessageHolderFactory>(&held));
  const auto stub = v1::Encoder::NewStub(
      grpc::experimental::CreateCustomChannelWithInterceptors(
          service.target(), grpc::InsecureChannelCredentials(), {},
          std::move(factories)));
  BulkStream stream(stub.get());
  v1::EmbedRequest request;
  request.set_request_id("first");
  request.add_inputs()->set_text("a text");
  stream.Write(request);
  ASSERT_NE(held, nullptr);
  request.Clear();
  request.set_request_id("second");
  held->Proceed();
  stream.Wait(/*for_write=*/false, kPatience);
  const std::vector<v1::EmbedResponse> answers = stream.Take();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].request_id(), "first");
  EXPECT_EQ(answers[0].embeddings_size(), 1);
}

TEST(BulkStreamTest, WaitsForAServer) {
  const HeldPort port;
  ASSERT_NE(port.port(), 0);
  const auto stub = v1::Encoder::NewStub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port.port()),
                          grpc::InsecureChannelCredentials()));
  BulkStream stream(stub.get());
  v1::EmbedRequest request;
  request.add_inputs()->set_text("a text");
  stream.Write(request);
  // A call that does not wait ends once the connection has failed.
  grpc::ClientContext context;
  v1::Model model;
  EXPECT_EQ(stub->GetModel(&context, {}, &model).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_FALSE(stream.ReadsEnded());
  const FakeEncoderService service(port.port());
  stream.Wait(/*for_write=*/false, kPatience);
  EXPECT_EQ(stream.Take().size(), 1u);
}

}  // namespace
}  // namespace encoderd::client
