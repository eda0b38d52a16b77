#include "server/rpc/embed_job.h"

#include <utility>

#include "absl/time/clock.h"
#include "engine/base/pooling.h"
#include "server/rpc/answer.h"

namespace encoderd {

absl::StatusOr<EmbedJob> EmbedJob::Make(const CallEnvironment& environment,
                                        v1::EmbedRequest* request,
                                        std::vector<InputFault> bad_texts) {
  const auto model = environment.models->Find(request->model());
  if (!model.ok()) return model.status();
  const Model& served = *(*model)->model;
  auto plan =
      ConvertEmbed(served.info(), served.tokenizer().num_special_tokens(false),
                   environment.limits, request, std::move(bad_texts));
  if (!plan.ok()) return plan.status();
  EmbedJob job;
  job.environment_ = &environment;
  job.model_ = *model;
  job.request_id_ = request->request_id();
  job.plan_ = *std::move(plan);
  return job;
}

std::shared_ptr<PipelineCall> EmbedJob::Submit(absl::Time deadline,
                                               uint64_t caller,
                                               Pipeline::Done done) {
  PipelineRequest request = std::move(plan_.request);
  plan_.request.output = request.output;  // still asked for by Answer
  request.deadline = deadline;
  request.caller = caller;
  return model_->pipeline->Submit(std::move(request), std::move(done));
}

void EmbedJob::Answer(PipelineResult result,
                      v1::EmbedResponse* response) const {
  const absl::Time start = absl::Now();
  const int32_t dimensions = plan_.dimensions;
  response->set_model(model_->name);
  response->set_request_id(request_id_);
  SetUsage(result, response->mutable_usage());
  response->mutable_embeddings()->Reserve(
      static_cast<int>(result.outputs.size()));
  for (InputResult& output : result.outputs) {
    v1::Embedding* embedding = response->add_embeddings();
    embedding->set_token_count(static_cast<uint32_t>(output.token_count));
    if (!output.status.ok()) {
      *embedding->mutable_error() =
          InputError(output.status, environment_->metrics);
      continue;
    }
    embedding->set_truncated(output.truncated);
    embedding->set_windows(static_cast<uint32_t>(output.windows));
    float* values = output.values.data();
    if (static_cast<size_t>(dimensions) < output.values.size() &&
        plan_.request.output.normalize) {
      NormalizeL2(values, dimensions);
    }
    if (plan_.packed) {
      embedding->set_scale(PackVector(
          plan_.format, plan_.ranges,
          absl::MakeConstSpan(values, static_cast<size_t>(dimensions)),
          embedding->mutable_packed()));
    } else {
      embedding->mutable_floats()->mutable_values()->Add(values,
                                                         values + dimensions);
    }
  }
  environment_->metrics->StageDuration(Stage::kReply, absl::Now() - start);
}

}  // namespace encoderd
