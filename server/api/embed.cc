#include "server/api/embed.h"

#include <utility>

#include "engine/base/pooling.h"

namespace encoderd {

absl::StatusOr<EmbedJob> EmbedJob::Make(const ServedModel& model,
                                        const RequestLimits& limits,
                                        EmbedRequest request) {
  EmbedJob job(model, request.request_id);
  const absl::Status status = job.Check(limits, &request);
  if (!status.ok()) return status;
  return job;
}

absl::Status EmbedJob::Check(const RequestLimits& limits,
                             EmbedRequest* request) {
  const EmbedOptions& options = request->options;
  const ModelConfig& config = info().config;
  absl::Status status =
      CheckInputCount(static_cast<int64_t>(request->inputs.size()), limits);
  if (status.ok()) status = CheckRequestId(request->request_id);
  if (!status.ok()) return status;

  const auto pooling =
      ToPooling("options.pooling", options.pooling, config.pooling);
  if (!pooling.ok()) return pooling.status();
  request_.output.pooling = *pooling;
  normalize_ = options.normalize.value_or(config.normalize);
  request_.output.normalize = normalize_;
  const auto truncate = ToTruncate("options.truncate", options.truncate);
  if (!truncate.ok()) return truncate.status();
  request_.truncate = *truncate;
  const auto dimensions = ToDimensions("options.dimensions", options.dimensions,
                                       config.dimensions());
  if (!dimensions.ok()) return dimensions.status();
  dimensions_ = *dimensions;
  const auto format = ToFormat("options.encoding", options.encoding);
  if (!format.ok()) return format.status();
  format_ = *format;
  packed_ = options.packed || format_ != VectorFormat::kFloat32;
  auto ranges = ToRanges("options.ranges", options.ranges, options.encoding,
                         format_, dimensions_);
  if (!ranges.ok()) return ranges.status();
  ranges_ = *std::move(ranges);
  request_.answer = {FormatBytes(format_, dimensions_),
                     limits.max_answer_bytes};
  const auto windows =
      ToWindows("options.windows", options.window_overlap, *truncate,
                info().limits.max_len,
                model().model->tokenizer().num_special_tokens(false));
  if (!windows.ok()) return windows.status();
  request_.window_overlap = *windows;
  const auto per_input = ToErrorsPerInput("options.on_error", options.on_error);
  if (!per_input.ok()) return per_input.status();
  request_.errors_per_input = *per_input;
  const auto prompt =
      FindPrompt("options.prompt_name", config, options.prompt_name);
  if (!prompt.ok()) return prompt.status();

  if (!prompt->empty()) {
    request_.prompt_name = PromptName(config, options.prompt_name);
  }
  request_.inputs = std::move(request->inputs);
  return CheckInputs(
      {*prompt, info().limits, *per_input, limits.max_answer_bytes},
      &request_.inputs);
}

std::vector<Embedding> EmbedJob::Answer(
    std::vector<InputResult>* outputs) const {
  std::vector<Embedding> embeddings(outputs->size());
  for (size_t i = 0; i < outputs->size(); ++i) {
    InputResult& output = (*outputs)[i];
    Embedding& embedding = embeddings[i];
    embedding.status = std::move(output.status);
    embedding.token_count = output.token_count;
    if (!embedding.status.ok()) continue;
    embedding.truncated = output.truncated;
    embedding.windows = output.windows;
    std::vector<float> values = std::move(output.values);
    if (static_cast<size_t>(dimensions_) < values.size() && normalize_) {
      NormalizeL2(values.data(), dimensions_);
    }
    values.resize(dimensions_);
    if (format_ == VectorFormat::kFloat32) {
      embedding.values = std::move(values);
      continue;
    }
    embedding.encoded.resize(FormatBytes(format_, dimensions_));
    embedding.scale =
        WriteVector(format_, ranges_, values,
                    reinterpret_cast<uint8_t*>(embedding.encoded.data()));
  }
  return embeddings;
}

}  // namespace encoderd
