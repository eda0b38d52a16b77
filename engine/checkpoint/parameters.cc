#include "engine/checkpoint/parameters.h"

#include <numeric>

#include "engine/checkpoint/positions.h"

namespace encoderd {
namespace {

// Y = X W^T + b and LayerNorm: their values, counted.
int64_t Linear(int64_t in, int64_t out) { return in * out + out; }
int64_t Norm(int64_t width) { return 2 * width; }

}  // namespace

ParameterCounts CountParameters(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t columns = config.table_columns();
  const int64_t inner = config.intermediate_size;
  ParameterCounts counts;
  counts.token_table = config.vocab_size * columns;
  if (config.position_scheme->has_table()) {
    counts.position_table = config.max_position_embeddings * columns;
  }
  counts.segment_table = config.type_vocab_size * columns;
  const int64_t biases =
      int64_t{config.attention_bias_rows} * config.num_attention_heads;
  counts.embedding = biases + counts.token_table + counts.position_table +
                     counts.segment_table + Norm(columns) +
                     (config.embedding_size > 0 ? Linear(columns, hidden) : 0);
  const int64_t layer = 4 * Linear(hidden, hidden) + Linear(hidden, inner) +
                        Linear(inner, hidden) + 2 * Norm(hidden);
  int32_t seen = 0;  // of the layers with weights of their own
  for (int32_t l = 0; l < config.num_hidden_layers; ++l) {
    const bool first = config.layer_weights_of(l) == seen;
    counts.layers.push_back(first ? layer : 0);
    if (first) ++seen;
  }
  for (const HeadModule& module : config.head) {
    if (module.kind == HeadModule::Kind::kDense) {
      const int64_t weights = int64_t{module.in} * module.out;
      counts.head += weights + (module.bias ? module.out : 0);
    } else if (module.kind == HeadModule::Kind::kLayerNorm) {
      counts.head += Norm(module.in);
    }
  }
  counts.total = std::accumulate(counts.layers.begin(), counts.layers.end(),
                                 counts.embedding + counts.head);
  return counts;
}

}  // namespace encoderd
