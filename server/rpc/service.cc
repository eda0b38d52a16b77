#include "server/rpc/service.h"

#include <utility>

#include "absl/status/statusor.h"
#include "encoderd/v1/encoder.grpc.pb.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/descriptor.h"
#include "server/rpc/convert.h"
#include "server/rpc/embed_stream.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

using google::protobuf::Arena;

// A method whose work is a job: read, check, submit, and the answer where the
// pipeline reports its result.
template <typename Request, typename Job, typename Response>
absl::Status Handle(const grpc::ByteBuffer& bytes, UnaryCall* call) {
  const CallEnvironment& environment = call->environment();
  Request request;
  const absl::Status status = Read(environment.api.limits, bytes, &request);
  if (!status.ok()) return status;
  auto made = Job::Make(environment.api, std::move(request));
  if (!made.ok()) return made.status();
  const auto job = std::make_shared<Job>(*std::move(made));
  const auto reply = [job, call](absl::StatusOr<PipelineResult> result) {
    if (!result.ok()) return result.status();
    Arena arena;
    auto* response = Arena::CreateMessage<Response>(&arena);
    const absl::Status filled =
        Fill(call->environment(), *job, *std::move(result), response);
    if (filled.ok()) call->Answer(*response, Job::kField);
    return filled;
  };
  call->CancelWith(job->Submit(call->deadline(), call->caller(),
                               [reply, alive = call->shared_from_this()](
                                   absl::StatusOr<PipelineResult> result) {
                                 alive->Continue(
                                     [&] { return reply(std::move(result)); });
                               }));
  return absl::OkStatus();
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
  call->Answer(response, "");
  return absl::OkStatus();
}

absl::Status HandleGetModel(const grpc::ByteBuffer& bytes, UnaryCall* call) {
  v1::GetModelRequest request;
  const absl::Status status = ParseMessage(bytes, &request);
  if (!status.ok()) return status;
  const Api& api = call->environment().api;
  const auto model = api.models->Find(request.model());
  if (!model.ok()) return model.status();
  v1::Model response;
  Fill(**model, api.limits, &response);
  call->Answer(response, "");
  return absl::OkStatus();
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
      : environment_(environment) {}

  grpc::ServerUnaryReactor* Embed(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* reply) override {
    return Start("Embed", Handle<EmbedRequest, EmbedJob, v1::EmbedResponse>,
                 context, request, reply);
  }
  grpc::ServerUnaryReactor* Encode(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* reply) override {
    return Start("Encode", Handle<EncodeRequest, EncodeJob, v1::EncodeResponse>,
                 context, request, reply);
  }
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    return Start("Tokenize",
                 Handle<TokenizeRequest, TokenizeJob, v1::TokenizeResponse>,
                 context, request, reply);
  }
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* reply) override {
    return Start("ListModels", HandleListModels, context, request, reply);
  }
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    return Start("GetModel", HandleGetModel, context, request, reply);
  }
  grpc::ServerUnaryReactor* InspectPositions(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* reply) override {
    return Start(
        "InspectPositions",
        Handle<InspectRequest, InspectJob, v1::InspectPositionsResponse>,
        context, request, reply);
  }
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* EmbedStream(
      grpc::CallbackServerContext* context) override {
    return encoderd::EmbedStream::Start(environment_, context);
  }

 private:
  grpc::ServerUnaryReactor* Start(const char* method,
                                  UnaryCall::Handler handler,
                                  grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* reply) {
    const auto call = std::make_shared<UnaryCall>(environment_, method, handler,
                                                  context, reply);
    call->Start(*request);  // keeps itself
    return call.get();
  }

  const CallEnvironment& environment_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewEncoderService(
    const CallEnvironment& environment) {
  return std::make_unique<EncoderService>(environment);
}

std::vector<std::string> EncoderMethods() {
  const google::protobuf::ServiceDescriptor* service =
      v1::EmbedRequest::descriptor()->file()->service(0);
  std::vector<std::string> names;
  for (int i = 0; i < service->method_count(); ++i) {
    names.emplace_back(service->method(i)->name());
  }
  return names;
}

}  // namespace encoderd
