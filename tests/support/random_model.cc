#include "tests/support/random_model.h"

#include <cmath>

#include "engine/checkpoint/architecture.h"

namespace encoderd {
namespace {

int32_t Columns(const RandomShape& shape) {
  return shape.embedding == 0 ? shape.hidden : shape.embedding;
}

// The rows of every architecture that these shapes take something from.
TensorTable Tensors(const RandomShape& shape) {
  TensorTable tensors = FindArchitecture("albert")->tensors;
  for (const TensorRow& row : FindArchitecture("mpnet")->tensors.rows) {
    if (row.role == Role::kAttentionBias) tensors.rows.push_back(row);
  }
  std::erase_if(tensors.rows, [&](const TensorRow& row) {
    return row.role == Role::kEmbeddingNorm && !shape.outer_norms;
  });
  for (TensorRow& row : tensors.rows) {
    if (row.role == Role::kFeedForwardIn && shape.gated) row.shape = "2F,H";
  }
  if (shape.pre_norm)
    tensors.rows.push_back({Role::kFinalNorm, "final_norm", "H"});
  return tensors;
}

class RandomSource : public WeightSource {
 public:
  RandomSource(const RandomShape& shape, uint32_t seed)
      : shape_(shape), seed_(seed) {}

  absl::StatusOr<OuterWeights> ReadOuter() override {
    OuterWeights weights;
    EmbeddingWeights& embeddings = weights.embeddings;
    const int32_t columns = Columns(shape_);
    std::mt19937 random(seed_);
    embeddings.token = Values(shape_.vocabulary, columns, 0.5f, &random);
    if (shape_.thetas.empty())
      embeddings.position = Values(shape_.positions, columns, 0.3f, &random);
    embeddings.segment = Values(shape_.segments, columns, 0.1f, &random);
    if (shape_.outer_norms) embeddings.norm = Norm(columns, &random);
    random.seed(seed_ + 1000);
    if (shape_.embedding > 0)
      weights.projection = Linear(shape_.hidden, columns, &random);
    random.seed(seed_ + 2000);
    if (shape_.relative_bias) {
      weights.attention_bias =
          Values(kRelativeBuckets, shape_.heads, 1.0f, &random);
    }
    random.seed(seed_ + 3000);
    if (shape_.pre_norm) weights.final_norm = Norm(shape_.hidden, &random);
    return weights;
  }

  absl::Status ReadLayer(int32_t layer, LayerWeights* weights) override {
    std::mt19937 random(seed_ + 1 + static_cast<uint32_t>(layer));
    const int32_t h = shape_.hidden, f = shape_.inner;
    weights->qkv = Linear(3 * h, h, &random);
    weights->attention_output = Linear(h, h, &random);
    weights->attention_norm = Norm(h, &random);
    if (layer == 0 && shape_.pre_norm && !shape_.outer_norms)
      weights->attention_norm = {};
    weights->feed_forward_in = Linear(shape_.gated ? 2 * f : f, h, &random);
    weights->feed_forward_out = Linear(h, f, &random);
    weights->feed_forward_norm = Norm(h, &random);
    return absl::OkStatus();
  }

 private:
  // Normal values with mean 0; own arithmetic on the generator's bits, as the
  // standard's distributions differ between libraries.
  static std::vector<float> Normal(int64_t count, float deviation,
                                   std::mt19937* random) {
    std::vector<float> values(count);
    for (float& value : values) {
      // Sum of four uniform values: near enough to normal, and quick.
      const uint64_t bits =
          (static_cast<uint64_t>((*random)()) << 32) | (*random)();
      float sum = 0;
      for (int i = 0; i < 4; ++i)
        sum += static_cast<float>((bits >> (16 * i)) & 0xffff);
      value = (sum / 65536.0f - 2.0f) * std::sqrt(3.0f) * deviation;
    }
    return values;
  }

  static HostMatrix Values(int64_t rows, int64_t cols, float deviation,
                           std::mt19937* random) {
    return {rows, cols, Normal(rows * cols, deviation, random)};
  }

  static LinearWeights Linear(int64_t out, int64_t in, std::mt19937* random) {
    const float deviation = 1.0f / std::sqrt(static_cast<float>(in));
    LinearWeights weights;
    weights.weight = Values(out, in, deviation, random);
    weights.bias = Normal(out, 0.2f, random);
    return weights;
  }

  static NormWeights Norm(int64_t size, std::mt19937* random) {
    NormWeights norm;
    norm.gain = Normal(size, 0.1f, random);
    for (float& gain : norm.gain) gain += 1.0f;
    norm.bias = Normal(size, 0.1f, random);
    return norm;
  }

  const RandomShape shape_;
  const uint32_t seed_;
};

}  // namespace

ModelConfig RandomConfig(const RandomShape& shape) {
  ModelConfig config;
  config.model_type = "bert";
  config.tensors = Tensors(shape);
  config.num_hidden_layers = shape.layers;
  config.hidden_size = shape.hidden;
  config.embedding_size = shape.embedding;
  for (int32_t l = 0; shape.distinct_layers > 0 && l < shape.layers; ++l)
    config.layer_weights.push_back(l * shape.distinct_layers / shape.layers);
  config.num_attention_heads = shape.heads;
  config.intermediate_size = shape.inner;
  config.vocab_size = shape.vocabulary;
  config.max_position_embeddings = shape.positions;
  config.type_vocab_size = shape.segments;
  config.hidden_act = shape.activation;
  if (shape.relative_bias) {
    config.position_scheme = &RelativeBiasPositions();
    config.attention_bias_rows = kRelativeBuckets;
    config.attention_bias = true;
  }
  config.pre_norm = shape.pre_norm;
  config.gated = shape.gated;
  for (const double theta : shape.thetas)
    config.rotations.push_back({theta, shape.hidden / shape.heads / 2 * 2});
  if (!shape.thetas.empty()) config.position_scheme = &RotaryPositions();
  for (int32_t l = 0; l < shape.layers; ++l) {
    LayerSpec spec;
    if (!shape.reaches.empty())
      spec.reach = shape.reaches[l % shape.reaches.size()];
    if (!shape.thetas.empty())
      spec.rotation = l % static_cast<int32_t>(shape.thetas.size());
    config.layers.push_back(spec);
  }
  config.max_len = shape.positions;
  return config;
}

IdLimits RandomLimits(const RandomShape& shape) {
  return RandomConfig(shape).limits();
}

std::unique_ptr<WeightSource> RandomCheckpoint(const RandomShape& shape,
                                               uint32_t seed) {
  return std::make_unique<RandomSource>(shape, seed);
}

TokenSequence RandomSequence(int32_t length, const IdLimits& limits,
                             std::mt19937* random) {
  TokenSequence sequence;
  for (int32_t i = 0; i < length; ++i) {
    sequence.token_ids.push_back(
        static_cast<int32_t>((*random)() % limits.token_rows));
  }
  if (limits.segment_rows > 1 && (*random)() % 2 == 0) {
    for (int32_t i = 0; i < length; ++i)
      sequence.segment_ids.push_back(i < length / 2 ? 0 : 1);
  }
  return sequence;
}

}  // namespace encoderd
