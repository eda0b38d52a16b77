// What differs between encoder architectures in their files: a table, one row
// each. To add one, add a row (and, where it computes something new, the op).
#ifndef ENCODERD_ENGINE_CHECKPOINT_ARCHITECTURE_H_
#define ENCODERD_ENGINE_CHECKPOINT_ARCHITECTURE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "engine/checkpoint/positions.h"

namespace encoderd {

// Keys of config.json; nullptr: the architecture has no such setting.
struct ConfigKeys {
  const char* num_hidden_layers;
  const char* hidden_size;
  const char* num_attention_heads;
  const char* intermediate_size;
  const char* vocab_size;
  const char* max_position_embeddings;
  const char* type_vocab_size;  // nullptr: no segments
  const char* layer_norm_eps;   // nullptr: 1e-12
  const char* hidden_act;
  const char* embedding_size = nullptr;     // nullptr: hidden_size
  const char* num_hidden_groups = nullptr;  // nullptr: no layers are shared
  const char* inner_group_num = nullptr;
  const char* attention_bias_rows = nullptr;  // nullptr: it has no such table
};

// Which token stands for padding in the position table's eyes: its row is the
// table's row of its own id, and positions of tokens start one row after it.
enum class PaddingRow {
  kNone,        // positions start at row 0
  kOne,         // token 1, whatever config.json says
  kPadTokenId,  // pad_token_id of config.json, 1 when it does not say
};

// Names of modules in a checkpoint, below the checkpoint's prefix; each has
// ".weight" and, tables excepted, ".bias". A layer's stand below `layer` with
// its number; nullptr: the architecture has no such module.
struct TensorNames {
  const char* token;
  const char* position;
  const char* segment;
  const char* embedding_norm;
  const char* layer;  // "encoder.layer."; where layers are shared, the groups'
  const char* query;
  const char* key;
  const char* value;
  const char* attention_output;
  const char* attention_norm;
  const char* feed_forward_in;
  const char* feed_forward_out;
  const char* output_norm;
  const char* inner_layer = nullptr;  // the layers of a group, below its number
  const char* projection = nullptr;   // from the tables' columns to hidden_size
  const char* attention_bias = nullptr;  // a table that all layers share
};

struct Architecture {
  const char* model_type;  // as in config.json
  ConfigKeys config;
  TensorNames tensors;
  // What config.json means when it does not say.
  int default_type_vocab_size = 2;
  int default_embedding_size = 128;
  const char* default_hidden_act = "gelu";
  PaddingRow padding_row = PaddingRow::kNone;
  // The only scheme, where position_embedding_type does not say it.
  const PositionScheme& (*position_scheme)() = nullptr;
  // The projection is there even where it changes no width.
  bool always_projects = false;
};

// nullptr for an architecture that is not supported.
const Architecture* FindArchitecture(absl::string_view model_type);
// "bert, ..."
std::string SupportedArchitectures();

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_ARCHITECTURE_H_
