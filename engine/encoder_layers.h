// The prepared weights of an encoder, in the order of a forward pass. Constant
// once built; internal to encoder.cc and encoder_session.cc.
#ifndef ENCODERD_ENGINE_ENCODER_LAYERS_H_
#define ENCODERD_ENGINE_ENCODER_LAYERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/device.h"

namespace encoderd {

struct EncoderLayer {
  std::unique_ptr<DeviceLinear> qkv;               // [H] -> [3H]
  std::unique_ptr<DeviceLinear> attention_output;  // [H] -> [H]
  std::unique_ptr<DeviceNorm> attention_norm;
  std::unique_ptr<DeviceLinear> feed_forward_in;   // [H] -> [F], activation
  std::unique_ptr<DeviceLinear> feed_forward_out;  // [F] -> [H]
  std::unique_ptr<DeviceNorm> feed_forward_norm;
};

struct EncoderLayers {
  int32_t hidden_size = 0;
  int32_t num_attention_heads = 0;
  int32_t intermediate_size = 0;
  int32_t embedding_size = 0;  // E; 0: not factored
  std::unique_ptr<DeviceEmbeddings> embeddings;
  std::unique_ptr<DeviceLinear> projection;             // [E] -> [H]; or null
  std::unique_ptr<DeviceAttentionBias> attention_bias;  // of all; or null
  std::vector<EncoderLayer> layers;  // those with weights of their own
  std::vector<int32_t> order;        // [L] into layers, as they run

  int32_t table_columns() const {
    return embedding_size > 0 ? embedding_size : hidden_size;
  }
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_ENCODER_LAYERS_H_
