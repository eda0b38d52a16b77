#include "engine/checkpoint/architecture.h"

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace {

constexpr ConfigKeys kBertKeys = {
    .num_hidden_layers = "num_hidden_layers",
    .hidden_size = "hidden_size",
    .num_attention_heads = "num_attention_heads",
    .intermediate_size = "intermediate_size",
    .vocab_size = "vocab_size",
    .max_position_embeddings = "max_position_embeddings",
    .type_vocab_size = "type_vocab_size",
    .layer_norm_eps = "layer_norm_eps",
    .hidden_act = "hidden_act",
};

constexpr TensorNames kBertNames = {
    .token = "embeddings.word_embeddings",
    .position = "embeddings.position_embeddings",
    .segment = "embeddings.token_type_embeddings",
    .embedding_norm = "embeddings.LayerNorm",
    .layer = "encoder.layer.",
    .query = "attention.self.query",
    .key = "attention.self.key",
    .value = "attention.self.value",
    .attention_output = "attention.output.dense",
    .attention_norm = "attention.output.LayerNorm",
    .feed_forward_in = "intermediate.dense",
    .feed_forward_out = "output.dense",
    .output_norm = "output.LayerNorm",
};

constexpr ConfigKeys FactoredKeys(bool grouped) {
  ConfigKeys keys = kBertKeys;
  keys.embedding_size = "embedding_size";
  if (grouped) {
    keys.num_hidden_groups = "num_hidden_groups";
    keys.inner_group_num = "inner_group_num";
  }
  return keys;
}

// BERT, with positions that start after the padding's row.
constexpr Architecture Roberta(const char* model_type) {
  return {.model_type = model_type,
          .config = kBertKeys,
          .tensors = kBertNames,
          .padding_row = PaddingRow::kPadTokenId};
}

// BERT without segments, under names of its own. `sinusoidal_pos_embds` says
// how the position table was first filled; the checkpoint has the table.
constexpr Architecture DistilBert() {
  return {.model_type = "distilbert",
          .config = {.num_hidden_layers = "n_layers",
                     .hidden_size = "dim",
                     .num_attention_heads = "n_heads",
                     .intermediate_size = "hidden_dim",
                     .vocab_size = "vocab_size",
                     .max_position_embeddings = "max_position_embeddings",
                     .type_vocab_size = nullptr,
                     .layer_norm_eps = nullptr,
                     .hidden_act = "activation"},
          .tensors = {.token = kBertNames.token,
                      .position = kBertNames.position,
                      .segment = nullptr,
                      .embedding_norm = kBertNames.embedding_norm,
                      .layer = "transformer.layer.",
                      .query = "attention.q_lin",
                      .key = "attention.k_lin",
                      .value = "attention.v_lin",
                      .attention_output = "attention.out_lin",
                      .attention_norm = "sa_layer_norm",
                      .feed_forward_in = "ffn.lin1",
                      .feed_forward_out = "ffn.lin2",
                      .output_norm = "output_layer_norm"}};
}

// BERT with tables that may be narrower or wider than the layers.
constexpr Architecture Electra() {
  TensorNames names = kBertNames;
  names.projection = "embeddings_project";
  return {.model_type = "electra",
          .config = FactoredKeys(/*grouped=*/false),
          .tensors = names};
}

// Narrow tables, and layers that share weights in groups.
constexpr Architecture Albert() {
  return {
      .model_type = "albert",
      .config = FactoredKeys(/*grouped=*/true),
      .tensors = {.token = kBertNames.token,
                  .position = kBertNames.position,
                  .segment = kBertNames.segment,
                  .embedding_norm = kBertNames.embedding_norm,
                  .layer = "encoder.albert_layer_groups.",
                  .query = "attention.query",
                  .key = "attention.key",
                  .value = "attention.value",
                  .attention_output = "attention.dense",
                  .attention_norm = "attention.LayerNorm",
                  .feed_forward_in = "ffn",
                  .feed_forward_out = "ffn_output",
                  .output_norm = "full_layer_layer_norm",
                  .inner_layer = "albert_layers.",
                  .projection = "encoder.embedding_hidden_mapping_in"},
      .default_hidden_act = "gelu_new",
      .always_projects = true,
  };
}

// BERT without segments, with positions that start at row 2 and a bias in
// attention.
constexpr Architecture MpNet() {
  ConfigKeys keys = kBertKeys;
  keys.type_vocab_size = nullptr;
  keys.attention_bias_rows = "relative_attention_num_buckets";
  TensorNames names = kBertNames;
  names.segment = nullptr;
  names.query = "attention.attn.q";
  names.key = "attention.attn.k";
  names.value = "attention.attn.v";
  names.attention_output = "attention.attn.o";
  names.attention_norm = "attention.LayerNorm";
  names.attention_bias = "encoder.relative_attention_bias";
  return {.model_type = "mpnet",
          .config = keys,
          .tensors = names,
          .padding_row = PaddingRow::kOne,
          .position_scheme = &RelativeBiasPositions};
}

constexpr Architecture kArchitectures[] = {
    {.model_type = "bert", .config = kBertKeys, .tensors = kBertNames},
    Roberta("roberta"),
    Roberta("xlm-roberta"),
    Roberta("camembert"),
    DistilBert(),
    Electra(),
    Albert(),
    MpNet(),
};

}  // namespace

const Architecture* FindArchitecture(absl::string_view model_type) {
  for (const Architecture& row : kArchitectures) {
    if (model_type == row.model_type) return &row;
  }
  return nullptr;
}

std::string SupportedArchitectures() {
  std::string names;
  for (const Architecture& row : kArchitectures) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", row.model_type);
  }
  return names;
}

}  // namespace encoderd
