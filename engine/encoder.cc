#include "engine/encoder.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/encoder_layers.h"
#include "engine/encoder_session.h"

namespace encoderd {
namespace {

// Prepares one piece after another; the first error stays.
class Preparer {
 public:
  explicit Preparer(Device* device) : device_(device) {}

  std::unique_ptr<DeviceLinear> Linear(
      LinearWeights weights, Activation activation = Activation::kNone) {
    return Take(device_->PrepareLinear(std::move(weights), activation));
  }
  std::unique_ptr<DeviceNorm> Norm(NormWeights weights, float eps) {
    return Take(device_->PrepareNorm(std::move(weights), eps));
  }
  std::unique_ptr<DeviceEmbeddings> Embeddings(EmbeddingWeights weights,
                                               float eps) {
    return Take(device_->PrepareEmbeddings(std::move(weights), eps));
  }
  std::unique_ptr<DeviceAttentionBias> AttentionBias(HostMatrix biases) {
    return Take(device_->PrepareAttentionBias(std::move(biases)));
  }
  const absl::Status& status() const { return status_; }

 private:
  template <typename T>
  std::unique_ptr<T> Take(absl::StatusOr<std::unique_ptr<T>> prepared) {
    if (prepared.ok()) return *std::move(prepared);
    if (status_.ok()) status_ = prepared.status();
    return nullptr;
  }

  Device* const device_;
  absl::Status status_;
};

class EncoderImpl : public Encoder {
 public:
  EncoderImpl(std::unique_ptr<Device> device, EncoderLayers layers,
              HostMatrix position_rows, const IdLimits& limits)
      : device_(std::move(device)),
        layers_(std::move(layers)),
        position_rows_(std::move(position_rows)),
        limits_(limits) {}

  const Device& device() const override { return *device_; }
  const HostMatrix& position_rows() const override { return position_rows_; }
  absl::StatusOr<std::unique_ptr<Session>> NewSession(
      const SessionOptions& options) const override {
    return NewEncoderSession(*device_, layers_, limits_, options);
  }

 private:
  const std::unique_ptr<const Device> device_;  // outlives the layers
  const EncoderLayers layers_;
  const HostMatrix position_rows_;
  const IdLimits limits_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Encoder>> Encoder::Build(
    std::unique_ptr<Device> device, const ModelConfig& config,
    const IdLimits& limits, CheckpointReader* checkpoint) {
  ModelSizes sizes;
  sizes.num_layers = config.distinct_layers();
  sizes.hidden_size = config.hidden_size;
  sizes.embedding_size = config.embedding_size;
  sizes.num_attention_heads = config.num_attention_heads;
  sizes.intermediate_size = config.intermediate_size;
  sizes.token_rows = limits.token_rows;
  sizes.position_rows = limits.position_rows;
  sizes.segment_rows = limits.segment_rows;
  sizes.max_len = limits.max_len;
  sizes.attention_bias = config.position_scheme->biases_attention();
  const absl::Status expected = device->ExpectModel(sizes);
  if (!expected.ok()) return expected;

  Preparer prepare(device.get());
  EncoderLayers layers;
  layers.hidden_size = config.hidden_size;
  layers.embedding_size = sizes.embedding_size;
  layers.num_attention_heads = config.num_attention_heads;
  layers.intermediate_size = config.intermediate_size;
  const float eps = config.layer_norm_eps;

  absl::StatusOr<EmbeddingWeights> embeddings = checkpoint->ReadEmbeddings();
  if (!embeddings.ok()) return embeddings.status();
  HostMatrix position_rows = embeddings->position;
  layers.embeddings = prepare.Embeddings(*std::move(embeddings), eps);
  if (config.embedding_size > 0) {
    absl::StatusOr<LinearWeights> projection = checkpoint->ReadProjection();
    if (!projection.ok()) return projection.status();
    layers.projection = prepare.Linear(*std::move(projection));
  }

  if (sizes.attention_bias) {
    const absl::StatusOr<HostMatrix> table = checkpoint->ReadAttentionBias();
    if (!table.ok()) return table.status();
    layers.attention_bias =
        prepare.AttentionBias(config.position_scheme->Biases(
            *table, config.num_attention_heads, limits.max_len));
  }

  for (int32_t l = 0; l < config.num_hidden_layers; ++l)
    layers.order.push_back(config.layer_weights_of(l));
  for (int32_t l = 0; l < config.distinct_layers(); ++l) {
    absl::StatusOr<LayerWeights> weights = checkpoint->ReadLayer(l);
    if (!weights.ok()) return weights.status();
    // This one alone: why is in device/cuda/README.
    weights->feed_forward_in.bears_8_bits = true;
    weights->attention_output.residual_follows = true;
    weights->feed_forward_out.residual_follows = true;
    EncoderLayer layer;
    layer.qkv = prepare.Linear(std::move(weights->qkv));
    layer.attention_output =
        prepare.Linear(std::move(weights->attention_output));
    layer.attention_norm =
        prepare.Norm(std::move(weights->attention_norm), eps);
    layer.feed_forward_in =
        prepare.Linear(std::move(weights->feed_forward_in), config.hidden_act);
    layer.feed_forward_out =
        prepare.Linear(std::move(weights->feed_forward_out));
    layer.output_norm = prepare.Norm(std::move(weights->output_norm), eps);
    layers.layers.push_back(std::move(layer));
    if (!prepare.status().ok()) return prepare.status();
  }
  if (!prepare.status().ok()) return prepare.status();
  return std::unique_ptr<const Encoder>(absl::make_unique<EncoderImpl>(
      std::move(device), std::move(layers), std::move(position_rows), limits));
}

}  // namespace encoderd
