#include "engine/architecture.h"

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

// RoBERTa and its children differ from BERT in where positions start.
constexpr Architecture Roberta(const char* model_type) {
  return {.model_type = model_type,
          .config = kBertKeys,
          .tensors = kBertNames,
          .default_type_vocab_size = 2,
          .padding_row = PaddingRow::kPadTokenId};
}

constexpr Architecture kArchitectures[] = {
    {
        .model_type = "bert",
        .config = kBertKeys,
        .tensors = kBertNames,
        .default_type_vocab_size = 2,
        .padding_row = PaddingRow::kNone,
    },
    Roberta("roberta"),
    Roberta("xlm-roberta"),
    Roberta("camembert"),
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
