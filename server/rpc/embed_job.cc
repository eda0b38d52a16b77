#include "server/rpc/embed_job.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "engine/pooling.h"

namespace encoderd {

void SetUsage(const PipelineResult& result, v1::Usage* usage) {
  usage->set_tokens(static_cast<uint64_t>(result.tokens));
  usage->set_tokenize_ms(absl::ToDoubleMilliseconds(result.tokenize_time));
  usage->set_queue_ms(absl::ToDoubleMilliseconds(result.queue_time));
  usage->set_compute_ms(absl::ToDoubleMilliseconds(result.compute_time));
}

float PackVector(VectorFormat format, const ByteRanges& ranges,
                 absl::Span<const float> values, std::string* bytes) {
  bytes->resize(FormatBytes(format, static_cast<int64_t>(values.size())));
  if constexpr (std::endian::native == std::endian::little) {
    if (format == VectorFormat::kFloat32) {
      std::memcpy(bytes->data(), values.data(), bytes->size());
      return 0;
    }
  }
  return WriteVector(format, ranges, values,
                     reinterpret_cast<uint8_t*>(bytes->data()));
}

absl::StatusOr<EmbedJob> EmbedJob::Make(const CallEnvironment& environment,
                                        v1::EmbedRequest* request) {
  const auto model = environment.models->Find(request->model());
  if (!model.ok()) return model.status();
  auto plan =
      ConvertEmbed((*model)->model->info(), environment.limits, request);
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
    float* values = output.values.data();
    if (static_cast<size_t>(dimensions) < output.values.size() &&
        plan_.request.output.normalize) {
      NormalizeL2(values, dimensions);
    }
    v1::Embedding* embedding = response->add_embeddings();
    if (plan_.packed) {
      embedding->set_scale(PackVector(
          plan_.format, plan_.ranges,
          absl::MakeConstSpan(values, static_cast<size_t>(dimensions)),
          embedding->mutable_packed()));
    } else {
      embedding->mutable_floats()->mutable_values()->Add(values,
                                                         values + dimensions);
    }
    embedding->set_token_count(static_cast<uint32_t>(output.token_count));
    embedding->set_truncated(output.truncated);
  }
  environment_->metrics->StageDuration(Stage::kReply, absl::Now() - start);
}

}  // namespace encoderd
