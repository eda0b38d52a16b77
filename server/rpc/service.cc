#include "server/rpc/service.h"

#include <memory>

#include "server/rpc/calls.h"
#include "server/rpc/embed_stream.h"
#include "server/rpc/inspect_call.h"

namespace encoderd {
namespace {

template <typename Call>
grpc::ServerUnaryReactor* StartCall(const CallEnvironment& environment,
                                    Method method,
                                    grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* reply) {
  const auto call = std::make_shared<Call>(environment, method, context, reply);
  call->Start(*request);  // keeps itself
  return call.get();
}

}  // namespace

grpc::ServerUnaryReactor* EncoderService::Embed(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return StartCall<EmbedCall>(environment_, Method::kEmbed, context, request,
                              reply);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
EncoderService::EmbedStream(grpc::CallbackServerContext* context) {
  return encoderd::EmbedStream::Start(environment_, context);
}

grpc::ServerUnaryReactor* EncoderService::Encode(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return StartCall<EncodeCall>(environment_, Method::kEncode, context, request,
                               reply);
}

grpc::ServerUnaryReactor* EncoderService::Tokenize(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return StartCall<TokenizeCall>(environment_, Method::kTokenize, context,
                                 request, reply);
}

grpc::ServerUnaryReactor* EncoderService::ListModels(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return StartCall<ListModelsCall>(environment_, Method::kListModels, context,
                                   request, reply);
}

grpc::ServerUnaryReactor* EncoderService::GetModel(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return StartCall<GetModelCall>(environment_, Method::kGetModel, context,
                                 request, reply);
}

grpc::ServerUnaryReactor* EncoderService::InspectPositions(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return StartCall<InspectPositionsCall>(
      environment_, Method::kInspectPositions, context, request, reply);
}

}  // namespace encoderd
