// The sizes of a model, one struct from config.json to the kernels, and what of
// it a device has to hold.
#ifndef ENCODERD_ENGINE_DEVICE_MODEL_SIZES_H_
#define ENCODERD_ENGINE_DEVICE_MODEL_SIZES_H_

#include <cstdint>
#include <vector>

#include "engine/base/kinds.h"

namespace encoderd {

struct ModelSizes {
  int32_t num_hidden_layers = 0;    // L, as many as run
  int32_t hidden_size = 0;          // H
  int32_t num_attention_heads = 0;  // A; divides H
  int32_t intermediate_size = 0;    // F
  // E of a factored embedding (ELECTRA, ALBERT): a linear [E] -> [H] follows
  // the tables' LayerNorm; 0: it is not factored, the tables have H columns.
  int32_t embedding_size = 0;
  int32_t max_len = 0;  // most tokens of one input, special tokens included

  // The form of the layers. Post-norm: each half's output is x = LayerNorm(x +
  // half(x)). Pre-norm: x = x + half(LayerNorm(x)), and a last LayerNorm.
  bool pre_norm = false;
  // The feed-forward layer is (activation(x A) * x B) C.
  bool gated = false;
  bool attention_bias = false;  // attention adds a bias by distance
  std::vector<Reach> reaches;   // to which layers limit attention, each once

  int32_t head_size() const { return hidden_size / num_attention_heads; }
  int32_t table_columns() const {
    return embedding_size > 0 ? embedding_size : hidden_size;
  }
  // Columns of the product that begins the feed-forward layer.
  int32_t inner_columns() const { return (gated ? 2 : 1) * intermediate_size; }
  // Columns of a Session's scratch in all: rows of tables, states, what a norm
  // made of them, Q|K|V, context, a half's output, the inner rows and those
  // that are gated.
  int64_t scratch_columns() const {
    return int64_t{embedding_size} + (pre_norm ? 7 : 6) * int64_t{hidden_size} +
           inner_columns() + (gated ? intermediate_size : 0);
  }
};

// One weight as a device prepares it.
struct WeightSize {
  enum class Kind {
    kTable,   // [rows,cols] in the device's dtype
    kLinear,  // [out,in] and its bias
    kNorm,    // gain and bias [rows]
    kFloats,  // [rows,cols] in fp32
  };
  Kind kind = Kind::kTable;
  int64_t rows = 0;
  int64_t cols = 0;
  bool allow_fp8 = false;  // as in LinearWeights
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_MODEL_SIZES_H_
