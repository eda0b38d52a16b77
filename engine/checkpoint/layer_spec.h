// What one layer of a model does in its own way, as the pass interprets it; the
// form that all layers share is in ModelSizes. Plain values.
#ifndef ENCODERD_ENGINE_CHECKPOINT_LAYER_SPEC_H_
#define ENCODERD_ENGINE_CHECKPOINT_LAYER_SPEC_H_

#include <cstdint>

#include "engine/base/kinds.h"

namespace encoderd {

struct LayerSpec {
  Reach reach;            // which keys attention sees
  int32_t rotation = -1;  // of Q and K, in ModelConfig::rotations; -1: none

  bool operator==(const LayerSpec&) const = default;
};

// Rotary positions (rotation.h).
struct Rotation {
  double theta = 0;
  int32_t dims = 0;  // of a head, even; those after them stay

  bool operator==(const Rotation&) const = default;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_LAYER_SPEC_H_
