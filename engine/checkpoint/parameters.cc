#include "engine/checkpoint/parameters.h"

#include <numeric>

#include "engine/checkpoint/tensor_table.h"

namespace encoderd {

ParameterCounts CountParameters(const ModelConfig& config) {
  ParameterCounts counts;
  std::vector<int64_t> layers(config.distinct_layers());
  for (const CheckpointModule& module : ModulesOf(config)) {
    const int64_t values = module.values();
    (module.row->in_layer ? layers[module.layer] : counts.embedding) += values;
    if (module.row->role == Role::kToken) counts.token_table = values;
    if (module.row->role == Role::kPosition) counts.position_table = values;
    if (module.row->role == Role::kSegment) counts.segment_table = values;
  }
  int32_t seen = 0;  // of the layers with their own weights
  for (int32_t l = 0; l < config.num_hidden_layers; ++l) {
    const bool first = config.layer_weights_of(l) == seen;
    counts.layers.push_back(first ? layers[seen] : 0);
    if (first) ++seen;
  }
  for (const HeadModule& module : config.head) {
    if (module.kind == HeadModule::Kind::kDense) {
      const int64_t weights = int64_t{module.in} * module.out;
      counts.head += weights + (module.bias ? module.out : 0);
    } else if (module.kind == HeadModule::Kind::kLayerNorm) {
      counts.head += 2 * module.in;
    }
  }
  counts.total = std::accumulate(counts.layers.begin(), counts.layers.end(),
                                 counts.embedding + counts.head);
  return counts;
}

}  // namespace encoderd
