// What GetModel reports about a model.
#include "server/rpc/convert.h"

namespace encoderd {
namespace {

void SetTable(int64_t rows, int64_t columns, int64_t parameters,
              v1::Table* table) {
  table->set_rows(static_cast<uint32_t>(rows));
  table->set_columns(rows == 0 ? 0 : static_cast<uint32_t>(columns));
  table->set_parameters(static_cast<uint64_t>(parameters));
}

v1::Pooling ToProto(Pooling pooling) {
  switch (pooling) {
    case Pooling::kCls:
      return v1::POOLING_CLS;
    case Pooling::kMean:
      return v1::POOLING_MEAN;
    case Pooling::kMax:
      return v1::POOLING_MAX;
    case Pooling::kMeanSqrtLen:
      return v1::POOLING_MEAN_SQRT_LEN;
    case Pooling::kWeightedMean:
      return v1::POOLING_WEIGHTED_MEAN;
    case Pooling::kLastToken:
      return v1::POOLING_LAST_TOKEN;
  }
  return v1::POOLING_UNSPECIFIED;
}

}  // namespace

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
    case MaxLenSource::kMaxPositions:
      return v1::MAX_LEN_SOURCE_MAX_POSITIONS;
  }
  return v1::MAX_LEN_SOURCE_UNSPECIFIED;
}

void Fill(const ServedModel& served, const RequestLimits& limits,
          v1::Model* model) {
  const ModelInfo& info = served.model->info();
  const ModelConfig& config = info.config;
  const ParameterCounts& parameters = info.parameters;
  model->set_name(served.name);
  model->set_architecture(config.model_type);
  model->set_hidden_size(config.hidden_size);
  model->set_num_hidden_layers(config.num_hidden_layers);
  model->set_num_attention_heads(config.num_attention_heads);
  model->set_intermediate_size(config.intermediate_size);
  model->set_max_len(info.limits.max_len);
  model->set_max_len_source(ToProto(config.max_len_source));
  model->set_position_offset(info.limits.position_offset);
  SetTable(info.limits.token_rows, config.table_columns(),
           parameters.token_table, model->mutable_token_table());
  SetTable(info.limits.position_rows, config.table_columns(),
           parameters.position_table, model->mutable_position_table());
  SetTable(info.limits.segment_rows, config.table_columns(),
           parameters.segment_table, model->mutable_segment_table());
  model->set_total_parameters(static_cast<uint64_t>(parameters.total));
  model->set_embedding_parameters(static_cast<uint64_t>(parameters.embedding));
  model->mutable_layer_parameters()->Add(parameters.layers.begin(),
                                         parameters.layers.end());
  model->set_head_parameters(static_cast<uint64_t>(parameters.head));
  model->set_dimensions(static_cast<uint32_t>(config.dimensions()));
  model->set_position_scheme(config.position_scheme->name());
  model->set_pooling(ToProto(config.pooling));
  model->set_normalize(config.normalize);
  model->set_dtype(info.dtype);
  model->set_device(info.device);
  model->set_tokenizer(info.tokenizer);
  model->set_vocab_size(served.model->tokenizer().vocab_size());
  model->set_weights_sha256(info.weights_sha256);
  model->set_fingerprint(info.fingerprint);
  for (const auto& [prompt, text] : config.prompts) {
    (*model->mutable_prompts())[prompt] = text;
  }
  model->set_default_prompt_name(config.default_prompt_name);
  model->set_max_inputs_per_request(limits.max_inputs);
}

}  // namespace encoderd
