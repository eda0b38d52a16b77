// What each layer of a model does in its own way, from config.json: the reach
// of its attention and its rotation.
//
// Layers see every token, or those before them (Architecture::causal), or by
// turns every token and a window of `window` tokens around them: layer_types
// says which, or every full_attention_period-th layer from the first on sees
// all. Where positions are rotary, the two kinds of layers have separate thetas
// (rope_parameters, or full_theta and window_theta).
#ifndef ENCODERD_ENGINE_CHECKPOINT_LAYERS_H_
#define ENCODERD_ENGINE_CHECKPOINT_LAYERS_H_

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/settings.h"

namespace encoderd {

// Fills in config->layers and config->rotations; the sizes are there. DATA_LOSS
// for a bad value, UNIMPLEMENTED for a kind of layer or rotation that is not
// served; both name it.
absl::Status ReadLayers(const Settings& settings, ModelConfig* config);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_LAYERS_H_
