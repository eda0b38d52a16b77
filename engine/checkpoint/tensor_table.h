// The tensors of an architecture's checkpoints as a table, and what follows
// from it alone: which tensors a checkpoint has, of which shapes. Pure.
//
// Sizes, one letter each: V, P, S rows of the token, position and segment
// tables (P: of a stored table), E their columns, X as E where the embedding is
// factored and else 0, H hidden, F feed-forward, A heads, R rows of the table
// of attention's biases. A tensor with an extent of 0 is not there.
#ifndef ENCODERD_ENGINE_CHECKPOINT_TENSOR_TABLE_H_
#define ENCODERD_ENGINE_CHECKPOINT_TENSOR_TABLE_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/device/model_sizes.h"

namespace encoderd {

struct ModelConfig;

// What the forward pass uses a tensor as.
enum class Role {
  kToken,
  kPosition,
  kSegment,
  kEmbeddingNorm,
  kProjection,     // from the tables' columns to H
  kAttentionBias,  // a table that all layers share
  kQkv,
  kAttentionOutput,
  kAttentionNorm,
  kFeedForwardIn,
  kFeedForwardOut,
  kFeedForwardNorm,
  kFinalNorm,
};
// "token", ..., "feed_forward_norm"; false: there is no such role.
bool ParseRole(absl::string_view name, Role* role);
bool IsNorm(Role role);

// A module NAME: the tensor NAME.weight and, with a bias, NAME.bias. Rows of
// one role lie one below the other in this order: Q, K and V as three rows or
// as one.
struct TensorRow {
  Role role;
  // Below the checkpoint's prefix, with {layer}, or with {group} and {inner}
  // where layers are shared.
  std::string name;
  std::string shape;  // "3H,H": [out,in] as the engine has it; "H" of a norm
  bool in_layer = false;
  bool bias = false;          // without one it has zeros
  bool transposed = false;    // stored as [in,out]
  bool not_first = false;     // the first layer has none
  std::string bias_key = {};  // of config.json: whether there is a bias
};

struct TensorTable {
  std::vector<TensorRow> rows;
  std::vector<std::string> ignored;  // buffers that are no weights, named alike
};

// One row in one layer of one model.
struct CheckpointModule {
  const TensorRow* row;
  int32_t layer;     // of the checkpoint's; 0 outside of layers
  std::string name;  // "encoder.layer.0.attention.self.query"
  int64_t out;       // rows; columns of a norm
  int64_t in;        // columns; 1 of a norm

  // Of NAME.weight, as it is stored.
  std::vector<int64_t> stored_shape() const;
  int64_t values() const { return out * in + (row->bias ? out : 0); }
};

// Every module of the checkpoint, in the table's order, the layers one after
// the other. They point into config.tensors.
std::vector<CheckpointModule> ModulesOf(const ModelConfig& config);

// The names of buffers that are passed over.
std::set<std::string> IgnoredNames(const ModelConfig& config);

// "3H", "V": a size, or some of it.
int64_t ExtentOf(absl::string_view text, const ModelConfig& config);

// What a device prepares of them, rows of one role in one; with the position
// rows that are generated, attention's biases and the rotations.
std::vector<WeightSize> WeightSizesOf(const ModelConfig& config);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_TENSOR_TABLE_H_
