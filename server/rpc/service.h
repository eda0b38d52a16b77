// encoderd.v1.Encoder over gRPC's callback API, as raw bytes: gRPC's own
// parser would answer a bad message with an empty UNIMPLEMENTED. Thread-safe.
#ifndef ENCODERD_SERVER_RPC_SERVICE_H_
#define ENCODERD_SERVER_RPC_SERVICE_H_

#include "encoderd/v1/encoder.grpc.pb.h"
#include "server/rpc/unary_call.h"

namespace encoderd {

class EncoderService final
    : public v1::Encoder::WithRawCallbackMethod_Embed<
          v1::Encoder::WithRawCallbackMethod_EmbedStream<
              v1::Encoder::WithRawCallbackMethod_Encode<
                  v1::Encoder::WithRawCallbackMethod_Tokenize<
                      v1::Encoder::WithRawCallbackMethod_ListModels<
                          v1::Encoder::WithRawCallbackMethod_GetModel<
                              v1::Encoder::
                                  WithRawCallbackMethod_InspectPositions<
                                      v1::Encoder::Service>>>>>>> {
 public:
  // `environment` and what it points to outlive the gRPC server and the
  // pipelines, which may still work on calls that were given up.
  explicit EncoderService(const CallEnvironment& environment)
      : environment_(environment) {}

  grpc::ServerUnaryReactor* Embed(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* reply) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* EmbedStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Encode(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* reply) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* reply) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override;
  grpc::ServerUnaryReactor* InspectPositions(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* reply) override;

 private:
  const CallEnvironment& environment_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_SERVICE_H_
