#include "server/rpc/service.h"

#include <utility>

#include "encoderd/v1/encoder.grpc.pb.h"
#include "google/protobuf/descriptor.h"
#include "server/rpc/convert.h"
#include "server/rpc/embed_stream.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

CallWork WorkOf(const PipelineResult& result) {
  return {result.tokens, result.stages};
}
// Nothing was computed for what is not of the pipeline.
template <typename Other>
CallWork WorkOf(const Other&) {
  return {};
}

// A method whose work is a job: read, check, submit, and the answer when the
// pipeline reports its result.
template <typename Request, typename JobOf>
absl::Status Handle(const grpc::ByteBuffer& bytes, UnaryCall* call) {
  const CallEnvironment& environment = call->environment();
  Request request;
  const absl::Status status = Read(environment, bytes, &request);
  if (!status.ok()) return status;
  const auto model = call->FindModel(request.model);
  if (!model.ok()) return model.status();
  auto made = JobOf::Make(**model, environment.api.limits, std::move(request));
  if (!made.ok()) return made.status();
  const auto job = std::make_shared<JobOf>(*std::move(made));
  // `auto`: the result of the job, PipelineResult for most.
  auto done = [job, alive = call->shared_from_this()](auto result) {
    alive->Continue([&]() -> absl::Status {
      if (!result.ok()) return result.status();
      const CallWork work = WorkOf(*result);
      WrittenAnswer answer;
      const absl::Status written =
          Write(alive->environment(), *job, *std::move(result), &answer);
      if (written.ok()) alive->Answer(&answer, work);
      return written;
    });
  };
  call->CancelWith(
      job->Submit(call->deadline(), call->caller(), std::move(done)));
  return absl::OkStatus();
}

absl::Status AnswerWith(const google::protobuf::Message& message,
                        UnaryCall* call) {
  WrittenAnswer answer;
  const absl::Status written =
      SerializeAnswer(message, call->environment().api.limits.max_answer_bytes,
                      "", &answer.bytes);
  if (written.ok()) call->Answer(&answer);
  return written;
}

absl::Status HandleListModels(const grpc::ByteBuffer& bytes, UnaryCall* call) {
  v1::ListModelsRequest request;
  const absl::Status status = ParseMessage(bytes, &request);
  if (!status.ok()) return status;
  const Api& api = call->environment().api;
  v1::ListModelsResponse response;
  for (const ServedModel* model : api.models->All()) {
    Fill(*model, api.limits, response.add_models());
  }
  return AnswerWith(response, call);
}

absl::Status HandleGetModel(const grpc::ByteBuffer& bytes, UnaryCall* call) {
  v1::GetModelRequest request;
  const absl::Status status = ParseMessage(bytes, &request);
  if (!status.ok()) return status;
  const Api& api = call->environment().api;
  const auto model = call->FindModel(request.model());
  if (!model.ok()) return model.status();
  v1::Model response;
  Fill(**model, api.limits, &response);
  return AnswerWith(response, call);
}

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
  explicit EncoderService(const CallEnvironment& environment)
      : environment_(environment),
        embed_(environment.metrics->ForMethod("Embed")),
        embed_stream_(environment.metrics->ForMethod("EmbedStream")),
        encode_(environment.metrics->ForMethod("Encode")),
        tokenize_(environment.metrics->ForMethod("Tokenize")),
        list_models_(environment.metrics->ForMethod("ListModels")),
        get_model_(environment.metrics->ForMethod("GetModel")),
        inspect_(environment.metrics->ForMethod("InspectPositions")) {}

  grpc::ServerUnaryReactor* Embed(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* reply) override {
    return Start(embed_, Handle<EmbedRequest, EmbedJob>, context, request,
                 reply);
  }
  grpc::ServerUnaryReactor* Encode(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* reply) override {
    return Start(encode_, Handle<EncodeRequest, EncodeJob>, context, request,
                 reply);
  }
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    return Start(tokenize_, Handle<TokenizeRequest, TokenizeJob>, context,
                 request, reply);
  }
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* reply) override {
    return Start(list_models_, HandleListModels, context, request, reply);
  }
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    return Start(get_model_, HandleGetModel, context, request, reply);
  }
  grpc::ServerUnaryReactor* InspectPositions(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* reply) override {
    return Start(inspect_, Handle<InspectRequest, InspectJob>, context, request,
                 reply);
  }
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* EmbedStream(
      grpc::CallbackServerContext* context) override {
    return encoderd::EmbedStream::Start(environment_, embed_stream_, context);
  }

 private:
  grpc::ServerUnaryReactor* Start(MethodMetrics* metrics,
                                  UnaryCall::Handler handler,
                                  grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* reply) {
    const auto call = std::make_shared<UnaryCall>(environment_, metrics,
                                                  handler, context, reply);
    call->Start(*request);  // keeps itself
    return call.get();
  }

  const CallEnvironment& environment_;
  MethodMetrics* const embed_;
  MethodMetrics* const embed_stream_;
  MethodMetrics* const encode_;
  MethodMetrics* const tokenize_;
  MethodMetrics* const list_models_;
  MethodMetrics* const get_model_;
  MethodMetrics* const inspect_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewEncoderService(
    const CallEnvironment& environment) {
  return std::make_unique<EncoderService>(environment);
}

std::vector<ServedMethod> EncoderMethods() {
  const google::protobuf::ServiceDescriptor* service =
      v1::EmbedRequest::descriptor()->file()->FindServiceByName("Encoder");
  std::vector<ServedMethod> methods;
  for (int i = 0; i < service->method_count(); ++i) {
    const auto* const method = service->method(i);
    methods.push_back(
        {std::string(method->name()),
         method->input_type()->FindFieldByName("model") != nullptr,
         method->input_type()->FindFieldByName("inputs") != nullptr,
         method->client_streaming()});
  }
  return methods;
}

}  // namespace encoderd
