// What differs between encoder architectures in their files: a table, one row
// each. To add one, add a row (and, where it computes something new, the op).
#ifndef ENCODERD_ENGINE_ARCHITECTURE_H_
#define ENCODERD_ENGINE_ARCHITECTURE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace encoderd {

// Keys of config.json.
struct ConfigKeys {
  const char* num_hidden_layers;
  const char* hidden_size;
  const char* num_attention_heads;
  const char* intermediate_size;
  const char* vocab_size;
  const char* max_position_embeddings;
  const char* type_vocab_size;
  const char* layer_norm_eps;
  const char* hidden_act;
};

// Which token stands for padding in the position table's eyes: its row is the
// table's row of its own id, and positions of tokens start one row after it.
enum class PaddingRow {
  kNone,        // positions start at row 0
  kPadTokenId,  // pad_token_id of config.json, 1 when it does not say
};

// Names of modules in a checkpoint, below the checkpoint's prefix; each has
// ".weight" and, tables excepted, ".bias". A layer's stand below `layer` with
// its number.
struct TensorNames {
  const char* token;
  const char* position;
  const char* segment;
  const char* embedding_norm;
  const char* layer;  // "encoder.layer."
  const char* query;
  const char* key;
  const char* value;
  const char* attention_output;
  const char* attention_norm;
  const char* feed_forward_in;
  const char* feed_forward_out;
  const char* output_norm;
};

struct Architecture {
  const char* model_type;  // as in config.json
  ConfigKeys config;
  TensorNames tensors;
  // What config.json means when it does not say.
  int default_type_vocab_size;
  PaddingRow padding_row;
};

// nullptr for an architecture that is not supported.
const Architecture* FindArchitecture(absl::string_view model_type);
// "bert, ..."
std::string SupportedArchitectures();

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_ARCHITECTURE_H_
