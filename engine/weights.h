// Checkpoint names -> weights by role. Reads one layer at a time, so that
// loading never holds the whole checkpoint twice. F16 and BF16 tensors are
// widened to float (exact). Q, K and V are fused.
#ifndef ENCODERD_ENGINE_WEIGHTS_H_
#define ENCODERD_ENGINE_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/model_config.h"
#include "engine/tensor.h"

namespace encoderd {

// y = (x - mean) / sqrt(var + eps) * gain + bias
struct NormWeights {
  std::vector<float> gain;  // one for each column
  std::vector<float> bias;
};

// y = x weight^T + bias
struct LinearWeights {
  HostMatrix weight;        // [out, in], as checkpoints keep it
  std::vector<float> bias;  // [out]
  // Bears 8 bits where the device is asked for them (Device::products).
  bool bears_8_bits = false;
  // A residual is added to y: a device may do that in the product.
  bool residual_follows = false;
};

struct EmbeddingWeights {
  HostMatrix token;     // [V,E]
  HostMatrix position;  // [P,E]; zero rows: the scheme adds nothing here
  HostMatrix segment;   // [S,E]; zero rows: the model has no segments
  NormWeights norm;     // [E]
};

struct LayerWeights {
  LinearWeights qkv;               // [3H,H], rows Q then K then V
  LinearWeights attention_output;  // [H,H]
  NormWeights attention_norm;
  LinearWeights feed_forward_in;   // [F,H]
  LinearWeights feed_forward_out;  // [H,F]
  NormWeights output_norm;
};

class CheckpointReader {
 public:
  // Opens model.safetensors or the shards of model.safetensors.index.json and
  // checks, before anything is read, that every tensor the config asks for is
  // there with its shape. Errors are DATA_LOSS and name tensor, shape found and
  // shape wanted; a folder with only .bin/.pt weights is refused with
  // UNIMPLEMENTED and the way to convert. Tensors beside the encoder (a pooler,
  // a task's head) are ignored and noted; a tensor within the embeddings or the
  // layers that the architecture does not know is refused, because it would
  // change digits.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& folder, const ModelConfig& config);
  virtual ~CheckpointReader() = default;

  // DATA_LOSS when the file ends early or a value is NaN or infinite (the
  // tensor and index are named).
  virtual absl::StatusOr<EmbeddingWeights> ReadEmbeddings() = 0;
  // The linear [H,E] between the tables' LayerNorm and the layers; zero rows:
  // the architecture has none.
  virtual absl::StatusOr<LinearWeights> ReadProjection() {
    return LinearWeights();
  }
  // The table of attention's biases [attention_bias_rows,A]; zero rows: the
  // architecture has none.
  virtual absl::StatusOr<HostMatrix> ReadAttentionBias() {
    return HostMatrix();
  }
  // layer: 0 to ModelConfig::distinct_layers() - 1.
  virtual absl::StatusOr<LayerWeights> ReadLayer(int32_t layer) = 0;

  // For the log: tensors that the encoder does not use and that are not read.
  virtual std::vector<std::string> notes() const { return {}; }

  // SHA-256 of the weight file, lower-case hex; of several shards: of their
  // digests, in the order of their names, joined by newlines.
  virtual absl::StatusOr<std::string> Sha256() = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_WEIGHTS_H_
