#include "engine/encoder.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/rotation.h"
#include "engine/checkpoint/tensor_table.h"
#include "engine/encoder_session.h"

namespace encoderd {
namespace {

// Prepares one piece after another; the first error stays.
class Preparer {
 public:
  Preparer(Device* device, const ModelConfig& config)
      : device_(device), config_(config) {}

  std::unique_ptr<DeviceLinear> Linear(
      const LinearWeights& weights, Activation activation = Activation::kNone) {
    return Take(device_->PrepareLinear(weights, activation));
  }
  // Null: there is none.
  std::unique_ptr<DeviceNorm> Norm(NormWeights weights) {
    if (weights.gain.empty()) return nullptr;
    return Take(
        device_->PrepareNorm(std::move(weights), config_.layer_norm_eps));
  }

  // What lies outside of the layers.
  void Outer(OuterWeights weights, EncoderLayers* layers) {
    layers->embedding_norm = !weights.embeddings.norm.gain.empty();
    layers->embeddings = Take(device_->PrepareEmbeddings(
        std::move(weights.embeddings), config_.layer_norm_eps));
    if (weights.projection.weight.rows > 0)
      layers->projection = Linear(weights.projection);
    if (config_.attention_bias) {
      layers->attention_bias =
          Take(device_->PrepareAttentionBias(config_.position_scheme->Biases(
              weights.attention_bias, config_.num_attention_heads,
              config_.max_len)));
    }
    for (const Rotation& rotation : config_.rotations) {
      // A row for every position id that an input may have.
      RotationTables tables = MakeRotationTables(
          rotation.theta, rotation.dims, config_.limits().position_rows);
      layers->rotations.push_back(Take(device_->PrepareRotation(
          std::move(tables.cos), std::move(tables.sin))));
    }
    layers->final_norm = Norm(std::move(weights.final_norm));
  }

  // Leaves the matrices in place, so that the next layer reuses their memory.
  EncoderLayer Layer(LayerWeights* weights) {
    // This one alone: why is in device/cuda/README.
    weights->feed_forward_in.allow_fp8 = true;
    // All of them: figures are in device/cpu/README.
    for (LinearWeights* linear :
         {&weights->qkv, &weights->attention_output, &weights->feed_forward_in,
          &weights->feed_forward_out}) {
      linear->allow_int8 = true;
    }
    weights->attention_output.residual_follows = true;
    weights->feed_forward_out.residual_follows = true;
    EncoderLayer layer;
    layer.qkv = Linear(weights->qkv);
    layer.attention_output = Linear(weights->attention_output);
    layer.attention_norm = Norm(std::move(weights->attention_norm));
    layer.feed_forward_in =
        Linear(weights->feed_forward_in,
               config_.gated ? Activation::kNone : config_.hidden_act);
    layer.feed_forward_out = Linear(weights->feed_forward_out);
    layer.feed_forward_norm = Norm(std::move(weights->feed_forward_norm));
    return layer;
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
  const ModelConfig& config_;
  absl::Status status_;
};

// With what a device may want to prove before it serves.
ModelSizes SizesOf(const ModelConfig& config) {
  ModelSizes sizes = config;
  for (const LayerSpec& layer : config.layers) {
    if (layer.reach != Reach() &&
        std::count(sizes.reaches.begin(), sizes.reaches.end(), layer.reach) ==
            0) {
      sizes.reaches.push_back(layer.reach);
    }
  }
  return sizes;
}

// Which norm follows which half of each layer.
absl::Status OrderLayers(const ModelConfig& config, EncoderLayers* layers) {
  const int32_t count = config.num_hidden_layers;
  for (int32_t l = 0; l < count; ++l) {
    const EncoderLayer& own = layers->layers[config.layer_weights_of(l)];
    EncoderStep step = {&own, config.layers[l], own.attention_norm.get(),
                        own.feed_forward_norm.get()};
    if (config.pre_norm) {
      step.after_attention = own.feed_forward_norm.get();
      step.after_feed_forward =
          l + 1 == count ? layers->final_norm.get()
                         : layers->layers[config.layer_weights_of(l + 1)]
                               .attention_norm.get();
    }
    if (step.after_attention == nullptr || step.after_feed_forward == nullptr) {
      return absl::DataLossError(absl::StrCat(
          "layer ", l,
          " lacks a normalization that its architecture needs: the files are "
          "damaged, or the model is not supported"));
    }
    layers->steps.push_back(step);
  }
  return absl::OkStatus();
}

}  // namespace

Encoder::Encoder(std::unique_ptr<Device> device, const IdLimits& limits)
    : device_(std::move(device)), limits_(limits) {}

absl::StatusOr<std::unique_ptr<const Encoder>> Encoder::Build(
    std::unique_ptr<Device> device, const ModelConfig& config,
    WeightSource* source) {
  const ModelSizes sizes = SizesOf(config);
  const absl::Status expected =
      device->ExpectModel(sizes, WeightSizesOf(config));
  if (!expected.ok()) return expected;
  auto encoder =
      absl::WrapUnique(new Encoder(std::move(device), config.limits()));
  EncoderLayers& layers = encoder->layers_;
  layers.sizes = sizes;
  layers.activation = config.hidden_act;
  Preparer prepare(encoder->device_.get(), config);
  absl::StatusOr<OuterWeights> outer = source->ReadOuter();
  if (!outer.ok()) return outer.status();
  encoder->position_rows_ = outer->embeddings.position.Widened();
  if (encoder->position_rows_.rows == 0 && !config.rotations.empty()) {
    const Rotation& first = config.rotations.front();
    encoder->position_rows_ =
        RotationRows(first.theta, first.dims, config.limits().position_rows);
  }
  prepare.Outer(*std::move(outer), &layers);
  LayerWeights weights;
  for (int32_t l = 0; l < config.distinct_layers(); ++l) {
    const absl::Status read = source->ReadLayer(l, &weights);
    if (!read.ok()) return read;
    layers.layers.push_back(prepare.Layer(&weights));
    if (!prepare.status().ok()) return prepare.status();
  }
  const absl::Status ordered = OrderLayers(config, &layers);
  if (!ordered.ok()) return ordered;
  return encoder;
}

absl::StatusOr<std::unique_ptr<Session>> Encoder::NewSession(
    const SessionOptions& options) const {
  return NewEncoderSession(*device_, layers_, limits_, options);
}

}  // namespace encoderd
