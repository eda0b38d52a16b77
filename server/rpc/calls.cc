#include "server/rpc/calls.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/io/coded_stream.h"
#include "server/pipeline/errors.h"
#include "server/rpc/answer.h"
#include "server/rpc/request.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

using google::protobuf::Arena;

// A token in the answer: its id and segment, the tag and length of its text.
constexpr int64_t kLeastTokenBytes = 4;

int64_t VarintBytes(int32_t value) {
  return google::protobuf::io::CodedOutputStream::VarintSize32(
      static_cast<uint32_t>(value));
}

// The lists of a TokenizedInput on the wire, without building them; a little
// less than the whole message.
int64_t TokenizedBytes(const Encoding& encoding, const Tokenizer& tokenizer) {
  int64_t bytes = 0;
  for (const int32_t id : encoding.token_ids) {
    const auto text = static_cast<int32_t>(tokenizer.Token(id).size());
    bytes += VarintBytes(id) + 1 + VarintBytes(text) + text;
  }
  for (const int32_t id : encoding.segment_ids) bytes += VarintBytes(id);
  for (const ByteOffset& offset : encoding.offsets) {
    bytes += VarintBytes(offset.begin) + VarintBytes(offset.end);
  }
  return bytes;
}

void FillTokenized(const Encoding& encoding, const Tokenizer& tokenizer,
                   v1::TokenizedInput* input) {
  input->mutable_ids()->Add(encoding.token_ids.begin(),
                            encoding.token_ids.end());
  input->mutable_segment_ids()->Add(encoding.segment_ids.begin(),
                                    encoding.segment_ids.end());
  input->mutable_tokens()->Reserve(static_cast<int>(encoding.token_ids.size()));
  for (int32_t id : encoding.token_ids) {
    input->add_tokens(std::string(tokenizer.Token(id)));
  }
  for (const ByteOffset& offset : encoding.offsets) {
    input->add_begin_offsets(static_cast<uint32_t>(offset.begin));
    input->add_end_offsets(static_cast<uint32_t>(offset.end));
  }
  input->set_token_count(static_cast<uint32_t>(encoding.token_ids.size()));
}

}  // namespace

absl::Status EmbedCall::Handle(const grpc::ByteBuffer& bytes) {
  Arena arena;
  auto* request = Arena::CreateMessage<v1::EmbedRequest>(&arena);
  std::vector<InputFault> bad_texts;
  const absl::Status status =
      ParseInputs(environment().limits, bytes, request, &bad_texts);
  if (!status.ok()) return status;
  auto job = EmbedJob::Make(environment(), request, std::move(bad_texts));
  if (!job.ok()) return job.status();
  job_ = *std::move(job);
  CancelWith(job_->Submit(deadline(), caller(),
                          [this, alive = shared_from_this()](
                              absl::StatusOr<PipelineResult> result) {
                            Continue([&] { return Reply(std::move(result)); });
                          }));
  return absl::OkStatus();
}

absl::Status EmbedCall::Reply(absl::StatusOr<PipelineResult> result) {
  if (!result.ok()) return result.status();
  Arena arena;
  auto* response = Arena::CreateMessage<v1::EmbedResponse>(&arena);
  job_->Answer(*std::move(result), response);
  Answer(*response);
  return absl::OkStatus();
}

absl::Status EncodeCall::Handle(const grpc::ByteBuffer& bytes) {
  Arena arena;
  auto* request = Arena::CreateMessage<v1::EncodeRequest>(&arena);
  std::vector<InputFault> bad_texts;
  const absl::Status status =
      ParseInputs(environment().limits, bytes, request, &bad_texts);
  if (!status.ok()) return status;
  const auto model = environment().models->Find(request->model());
  if (!model.ok()) return model.status();
  auto converted = ConvertEncode((*model)->model->info(), environment().limits,
                                 request, std::move(bad_texts));
  if (!converted.ok()) return converted.status();

  model_ = *model;
  request_id_ = request->request_id();
  columns_ = static_cast<uint32_t>(converted->answer.row_bytes /
                                   int64_t{sizeof(float)});
  converted->deadline = deadline();
  converted->caller = caller();
  CancelWith(model_->pipeline->Submit(
      std::move(*converted), [this, alive = shared_from_this()](
                                 absl::StatusOr<PipelineResult> result) {
        Continue([&] { return Reply(std::move(result)); });
      }));
  return absl::OkStatus();
}

absl::Status EncodeCall::Reply(absl::StatusOr<PipelineResult> result) {
  if (!result.ok()) return result.status();
  const absl::Time start = absl::Now();
  Arena arena;
  auto* response = Arena::CreateMessage<v1::EncodeResponse>(&arena);
  response->set_model(model_->name);
  response->set_request_id(request_id_);
  SetUsage(*result, response->mutable_usage());
  for (InputResult& output : result->outputs) {
    v1::TokenStates* states = response->add_states();
    states->set_token_count(static_cast<uint32_t>(output.token_count));
    if (!output.status.ok()) {
      *states->mutable_error() =
          InputError(output.status, environment().metrics);
      continue;
    }
    states->set_rows(static_cast<uint32_t>(output.rows));
    states->set_columns(columns_);
    PackVector(VectorFormat::kFloat32, {}, output.values,
               states->mutable_packed());
    output.values = {};
    states->set_truncated(output.truncated);
  }
  environment().metrics->StageDuration(Stage::kReply, absl::Now() - start);
  Answer(*response);
  return absl::OkStatus();
}

absl::Status TokenizeCall::Handle(const grpc::ByteBuffer& bytes) {
  Arena arena;
  auto* request = Arena::CreateMessage<v1::TokenizeRequest>(&arena);
  absl::Status status = ParseInputs(environment().limits, bytes, request);
  if (!status.ok()) return status;
  const auto model = environment().models->Find(request->model());
  if (!model.ok()) return model.status();
  auto inputs =
      ConvertTokenize((*model)->model->info(), environment().limits, request);
  if (!inputs.ok()) return inputs.status();

  model_ = *model;
  TokenizePipelineRequest tokenize;
  tokenize.inputs = std::move(*inputs);
  tokenize.options.offsets = true;
  tokenize.answer = {kLeastTokenBytes, environment().limits.max_message_bytes};
  tokenize.deadline = deadline();
  CancelWith(model_->pipeline->SubmitTokenize(
      std::move(tokenize), [this, alive = shared_from_this()](
                               absl::StatusOr<std::vector<Encoding>> result) {
        Continue([&] { return Reply(std::move(result)); });
      }));
  return absl::OkStatus();
}

absl::Status TokenizeCall::Reply(absl::StatusOr<std::vector<Encoding>> result) {
  if (!result.ok()) return result.status();
  const absl::Time start = absl::Now();
  const Tokenizer& tokenizer = model_->model->tokenizer();
  const uint32_t max_len = model_->description.max_len();
  Arena arena;
  auto* response = Arena::CreateMessage<v1::TokenizeResponse>(&arena);
  response->set_model(model_->name);
  response->set_max_len(max_len);
  const int64_t limit = environment().limits.max_message_bytes;
  int64_t bytes = 0;
  for (Encoding& encoding : *result) {
    bytes += TokenizedBytes(encoding, tokenizer);
    if (bytes > limit) return AnswerTooLargeError(bytes, limit, "inputs");
    v1::TokenizedInput* input = response->add_inputs();
    FillTokenized(encoding, tokenizer, input);
    encoding = Encoding();
    input->set_fits(input->token_count() <= max_len);
  }
  environment().metrics->StageDuration(Stage::kReply, absl::Now() - start);
  Answer(*response);
  return absl::OkStatus();
}

absl::Status ListModelsCall::Handle(const grpc::ByteBuffer& bytes) {
  v1::ListModelsRequest request;
  const absl::Status status = ParseMessage(bytes, &request);
  if (!status.ok()) return status;
  v1::ListModelsResponse response;
  for (const ServedModel* model : environment().models->All()) {
    *response.add_models() = model->description;
  }
  Answer(response, "");
  return absl::OkStatus();
}

absl::Status GetModelCall::Handle(const grpc::ByteBuffer& bytes) {
  v1::GetModelRequest request;
  const absl::Status status = ParseMessage(bytes, &request);
  if (!status.ok()) return status;
  const auto model = environment().models->Find(request.model());
  if (!model.ok()) return model.status();
  Answer((*model)->description, "");
  return absl::OkStatus();
}

}  // namespace encoderd
