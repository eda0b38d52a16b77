// What a model folder's JSON files say, checked and turned into one struct.
//
// Reads config.json and, where present, sentence-transformers' modules.json
// (with the modules' own config.json), sentence_bert_config.json,
// config_sentence_transformers.json (prompts) and tokenizer_config.json
// (model_max_length). Anything that would change a digit and is not supported
// (an architecture, a module, an activation, a position scheme) is refused by
// name.
#ifndef ENCODERD_ENGINE_CHECKPOINT_MODEL_CONFIG_H_
#define ENCODERD_ENGINE_CHECKPOINT_MODEL_CONFIG_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/batch.h"
#include "engine/base/head.h"
#include "engine/base/kinds.h"
#include "engine/checkpoint/layer_spec.h"
#include "engine/checkpoint/max_len.h"
#include "engine/checkpoint/positions.h"
#include "engine/checkpoint/tensor_table.h"
#include "engine/device/model_sizes.h"

namespace encoderd {

// The sizes of the model, and what else its files say.
struct ModelConfig : ModelSizes {
  std::string model_type;           // "bert"
  std::string transformer_folder;   // holds config.json, weights, tokenizer;
                                    // below the model folder, "": itself
  bool lowercase = false;           // texts are, before they are tokenized
  bool segments_of_tokens = false;  // as in Architecture
  TensorTable tensors;              // of the checkpoint
  int32_t vocab_size = 0;           // V
  // P, as config.json claims; a table is checked against it. Generated rows
  // are as many as max_len needs, whatever config.json claims.
  int32_t max_position_embeddings = 0;
  const PositionScheme* position_scheme = &LearnedPositions();
  int32_t type_vocab_size = 0;  // S; 0: no segment table
  // Rows of the checkpoint's table of attention's biases [rows,A]; 0: none.
  int32_t attention_bias_rows = 0;
  float layer_norm_eps = 1e-12f;
  Activation hidden_act = Activation::kGeluErf;
  int32_t position_offset = 0;  // as in IdLimits

  std::vector<LayerSpec> layers;    // [L]
  std::vector<Rotation> rotations;  // that layers name
  // Layers that share weights (ALBERT): for each of the L layers, which of the
  // checkpoint's it runs; empty: every layer has its own. The checkpoint has
  // groups of inner_group_num layers.
  std::vector<int32_t> layer_weights;
  int32_t inner_group_num = 1;

  Pooling pooling = Pooling::kMean;
  std::vector<HeadModule> head;  // modules after pooling, but for a Normalize
                                 // at the end; their widths fit
  bool normalize = false;        // the pipeline ends in a Normalize module
  std::map<std::string, std::string> prompts;
  std::string default_prompt_name;  // empty: none

  MaxLenSource max_len_source = MaxLenSource::kPositionTable;
  // The setting: "max_seq_length in sentence_bert_config.json"; empty: the flag
  std::string max_len_setting;

  // Sentences for the log: leftovers that are ignored and why, limits that
  // differ between files.
  std::vector<std::string> notes;
  // Likewise, where vectors may differ from what the authors intended; logged
  // as warnings.
  std::vector<std::string> warnings;

  // Values of an embedding.
  int32_t dimensions() const {
    return head.empty() ? hidden_size : head.back().out;
  }
  // What the ids of an input are checked against.
  IdLimits limits() const {
    return {.token_rows = vocab_size,
            .segment_rows = type_vocab_size,
            .position_rows = max_position_embeddings,
            .position_offset = position_offset,
            .max_len = max_len};
  }
  // Which of the checkpoint's layers the l-th one runs.
  int32_t layer_weights_of(int32_t l) const {
    return layer_weights.empty() ? l : layer_weights[l];
  }
  // Layers with their own weights, in the order in which they first run.
  int32_t distinct_layers() const {
    return layer_weights.empty() ? num_hidden_layers : layer_weights.back() + 1;
  }
};

// max_len_flag: 0 for the rule of max_len.h; else it replaces the rule's
// answer, and is refused with INVALID_ARGUMENT above the position table's rows.
// Errors: NOT_FOUND (no such folder or no config.json), those of File::Open,
// DATA_LOSS (a bad file: name, value, limit), UNIMPLEMENTED (a thing by name
// that is not supported).
absl::StatusOr<ModelConfig> LoadModelConfig(const std::string& folder,
                                            int32_t max_len_flag);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_MODEL_CONFIG_H_
