// The weights of a model by role, on the host, as Encoder::Build asks for them:
// read from a checkpoint, or made up by a test.
#ifndef ENCODERD_ENGINE_CHECKPOINT_WEIGHT_SOURCE_H_
#define ENCODERD_ENGINE_CHECKPOINT_WEIGHT_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/device/weights.h"

namespace encoderd {

// What lies outside of the layers.
struct OuterWeights {
  EmbeddingWeights embeddings;
  LinearWeights projection;   // [H,E], from the tables to the layers; or empty
  HostMatrix attention_bias;  // [R,A], of all layers; or empty
  NormWeights final_norm;     // [H], pre-norm; or empty
};

struct LayerWeights {
  LinearWeights qkv;               // [3H,H], rows Q then K then V
  LinearWeights attention_output;  // [H,H]
  NormWeights attention_norm;      // [H]; or empty
  LinearWeights feed_forward_in;   // [F,H]; gated: [2F,H]
  LinearWeights feed_forward_out;  // [H,F]
  NormWeights feed_forward_norm;   // [H]
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Errors of File::ReadAt; DATA_LOSS when a value is NaN or infinite (the
  // tensor and index are named).
  virtual absl::StatusOr<OuterWeights> ReadOuter() = 0;
  // layer: 0 to ModelConfig::distinct_layers() - 1. One at a time, so that
  // loading never holds the whole checkpoint twice. Overwrites the matrices,
  // biases and norms of *weights, reusing their memory where it can: fresh
  // pages cost more than reading into them. The caller sets the flags after
  // each call. After an error the values are unspecified.
  virtual absl::Status ReadLayer(int32_t layer, LayerWeights* weights) = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_WEIGHT_SOURCE_H_
