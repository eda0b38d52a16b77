// The prepared weights of an encoder, in the order of a forward pass. Constant
// once built; internal to encoder.cc and encoder_session.cc.
#ifndef ENCODERD_ENGINE_ENCODER_LAYERS_H_
#define ENCODERD_ENGINE_ENCODER_LAYERS_H_

#include <memory>
#include <vector>

#include "engine/checkpoint/layer_spec.h"
#include "engine/device/device.h"

namespace encoderd {

struct EncoderLayer {
  std::unique_ptr<DeviceLinear> qkv;               // [H] -> [3H]
  std::unique_ptr<DeviceLinear> attention_output;  // [H] -> [H]
  std::unique_ptr<DeviceNorm> attention_norm;      // null: none
  std::unique_ptr<DeviceLinear> feed_forward_in;   // [H] -> [F]; gated: [2F]
  std::unique_ptr<DeviceLinear> feed_forward_out;  // [F] -> [H]
  std::unique_ptr<DeviceNorm> feed_forward_norm;
};

// One layer of the pass. The norms are those that follow its two halves: the
// layer's own, or pre-norm those that the next half begins with.
struct EncoderStep {
  const EncoderLayer* weights = nullptr;
  LayerSpec spec;
  const DeviceNorm* after_attention = nullptr;
  const DeviceNorm* after_feed_forward = nullptr;
};

struct EncoderLayers {
  ModelSizes sizes;
  Activation activation = Activation::kNone;
  bool embedding_norm = true;
  std::unique_ptr<DeviceEmbeddings> embeddings;
  std::unique_ptr<DeviceLinear> projection;             // [E] -> [H]; or null
  std::unique_ptr<DeviceAttentionBias> attention_bias;  // of all; or null
  std::vector<std::unique_ptr<DeviceRotation>> rotations;
  std::vector<EncoderLayer> layers;        // those with their own weights
  std::unique_ptr<DeviceNorm> final_norm;  // pre-norm
  std::vector<EncoderStep> steps;          // [L], into the above
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_ENCODER_LAYERS_H_
