// What sentence-transformers' Transformer module is told, next to the
// transformer: sentence_bert_config.json, or one of its older names.
#ifndef ENCODERD_ENGINE_CHECKPOINT_TRANSFORMER_SETTINGS_H_
#define ENCODERD_ENGINE_CHECKPOINT_TRANSFORMER_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/io/json.h"

namespace encoderd {

struct TransformerSettings {
  std::string file;        // its name; empty: there is none
  bool lowercase = false;  // lowercase texts before tokenizing
  // Tokens, special tokens included; 0: not set.
  int64_t max_seq_length = 0;
  // Replaces that of tokenizer_config.json and, as in sentence-transformers,
  // max_seq_length, which is then 0. 0: no limit.
  std::optional<int64_t> model_max_length;
};

// `transformer_folder`: below the model folder, "" for itself. All defaults
// where there is no file. Else File::Open's errors; UNIMPLEMENTED for a setting
// by name that would change a vector and is not supported: arguments for
// transformers' classes, another output than the last states, other lengths for
// queries.
absl::StatusOr<TransformerSettings> ReadTransformerSettings(
    const std::string& folder, const std::string& transformer_folder);

// "model_max_length"; 0 where it is not set. Tokenizers without a limit carry
// 1e30, which also gives 0.
absl::StatusOr<int64_t> ModelMaxLength(const JsonFields& fields);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_TRANSFORMER_SETTINGS_H_
