#include "server/rpc/model_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "server/rpc/convert.h"
#include "server/rpc/options.h"

namespace encoderd {
namespace {

void SetTable(int64_t rows, int64_t columns, int64_t parameters,
              v1::Table* table) {
  table->set_rows(static_cast<uint32_t>(rows));
  table->set_columns(rows == 0 ? 0 : static_cast<uint32_t>(columns));
  table->set_parameters(static_cast<uint64_t>(parameters));
}

v1::MaxLenSource ToProto(MaxLenSource source) {
  switch (source) {
    case MaxLenSource::kPositionTable:
      return v1::MAX_LEN_SOURCE_POSITION_TABLE;
    case MaxLenSource::kSentenceTransformers:
      return v1::MAX_LEN_SOURCE_SENTENCE_TRANSFORMERS;
    case MaxLenSource::kTokenizer:
      return v1::MAX_LEN_SOURCE_TOKENIZER;
    case MaxLenSource::kFlag:
      return v1::MAX_LEN_SOURCE_FLAG;
  }
  return v1::MAX_LEN_SOURCE_UNSPECIFIED;
}

}  // namespace

v1::Model DescribeModel(const std::string& name, const ModelInfo& info,
                        int32_t tokenizer_vocab_size,
                        int32_t max_inputs_per_request) {
  const ModelConfig& config = info.config;
  const ParameterCounts& parameters = info.parameters;
  v1::Model model;
  model.set_name(name);
  model.set_architecture(config.model_type);
  model.set_hidden_size(config.hidden_size);
  model.set_num_hidden_layers(config.num_hidden_layers);
  model.set_num_attention_heads(config.num_attention_heads);
  model.set_intermediate_size(config.intermediate_size);
  model.set_max_len(info.limits.max_len);
  model.set_max_len_source(ToProto(config.max_len_source));
  model.set_position_offset(info.limits.position_offset);
  SetTable(info.limits.token_rows, config.table_columns(),
           parameters.token_table, model.mutable_token_table());
  SetTable(info.limits.position_rows, config.table_columns(),
           parameters.position_table, model.mutable_position_table());
  SetTable(info.limits.segment_rows, config.table_columns(),
           parameters.segment_table, model.mutable_segment_table());
  model.set_total_parameters(static_cast<uint64_t>(parameters.total));
  model.set_embedding_parameters(static_cast<uint64_t>(parameters.embedding));
  model.mutable_layer_parameters()->Add(parameters.layers.begin(),
                                        parameters.layers.end());
  model.set_head_parameters(static_cast<uint64_t>(parameters.head));
  model.set_dimensions(static_cast<uint32_t>(config.dimensions()));
  model.set_position_scheme(config.position_scheme->name());
  model.set_pooling(PoolingToProto(config.pooling));
  model.set_normalize(config.normalize);
  model.set_dtype(info.dtype);
  model.set_device(info.device);
  model.set_tokenizer(info.tokenizer);
  model.set_vocab_size(tokenizer_vocab_size);
  model.set_weights_sha256(info.weights_sha256);
  for (const auto& [prompt, text] : config.prompts) {
    (*model.mutable_prompts())[prompt] = text;
  }
  model.set_default_prompt_name(config.default_prompt_name);
  model.set_max_inputs_per_request(max_inputs_per_request);
  return model;
}

void ModelRegistry::Add(std::unique_ptr<ServedModel> model) {
  absl::MutexLock lock(&mu_);
  const ServedModel* added = model.get();
  models_[added->name] = std::move(model);
  if (default_ == nullptr) default_ = added;
}

absl::StatusOr<const ServedModel*> ModelRegistry::Find(
    const std::string& name) const {
  absl::MutexLock lock(&mu_);
  if (name.empty() && default_ != nullptr) return default_;
  const auto at = models_.find(name);
  if (at != models_.end()) return at->second.get();
  std::string available;
  for (const auto& entry : models_) {
    absl::StrAppend(&available, available.empty() ? "" : ", ", entry.first);
  }
  const std::string asked = ForMessage(name);
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("no model '", asked, "'; there is ", available),
                   {"MODEL_NOT_FOUND",
                    {{"model", asked}, {"available", available}},
                    "model"});
}

std::vector<const ServedModel*> ModelRegistry::All() const {
  absl::MutexLock lock(&mu_);
  std::vector<const ServedModel*> all;
  if (default_ != nullptr) all.push_back(default_);
  for (const auto& entry : models_) {
    if (entry.second.get() != default_) all.push_back(entry.second.get());
  }
  return all;
}

}  // namespace encoderd
