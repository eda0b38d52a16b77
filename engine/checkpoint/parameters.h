// How many parameters a model has, and where: a pure function of its shapes.
// Loads nothing, so a model of any size can be counted.
#ifndef ENCODERD_ENGINE_CHECKPOINT_PARAMETERS_H_
#define ENCODERD_ENGINE_CHECKPOINT_PARAMETERS_H_

#include <cstdint>
#include <vector>

#include "engine/checkpoint/model_config.h"

namespace encoderd {

// Values of tensors, LayerNorms and biases included. Generated position rows
// are no parameters.
struct ParameterCounts {
  int64_t token_table = 0;      // V * E
  int64_t position_table = 0;   // P * E
  int64_t segment_table = 0;    // S * E
  int64_t embedding = 0;        // all tables, LayerNorm and projection
  std::vector<int64_t> layers;  // [L]; shared weights where they first run
  int64_t head = 0;             // the modules after pooling
  int64_t total = 0;            // embedding, layers and head
};

ParameterCounts CountParameters(const ModelConfig& config);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_PARAMETERS_H_
