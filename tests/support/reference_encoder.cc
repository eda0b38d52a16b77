#include "tests/support/reference_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "tests/support/activation.h"

namespace encoderd {
namespace {

// MPNet's bucket by its formula, with logarithms.
int64_t Bucket(int64_t query, int64_t key) {
  const int64_t first = key > query ? 16 : 0, far = std::abs(key - query);
  if (far < 8) return first + far;
  const double steps =
      8 * std::log(static_cast<double>(far) / 8) / std::log(128.0 / 8);
  // 1e-9: where the quotient is whole but for its rounding.
  return first + std::min<int64_t>(8 + static_cast<int64_t>(steps + 1e-9), 15);
}

}  // namespace

ReferenceEncoder::ReferenceEncoder(const ModelConfig& config,
                                   WeightSource* source, RoundRow round)
    : config_(config),
      round_(std::move(round)),
      outer_(*source->ReadOuter()),
      token_(outer_.embeddings.token.Widened()),
      position_(outer_.embeddings.position.Widened()),
      segment_(outer_.embeddings.segment.Widened()) {
  layers_.resize(config.distinct_layers());
  for (int32_t l = 0; l < config.distinct_layers(); ++l) {
    if (!source->ReadLayer(l, &layers_[l]).ok()) std::abort();
  }
}

ReferenceEncoder::Rows ReferenceEncoder::Rounded(Rows rows,
                                                 int64_t cols) const {
  for (size_t row = 0; row < rows.size(); row += cols)
    round_(rows.data() + row, cols);
  return rows;
}

ReferenceEncoder::Rows ReferenceEncoder::Linear(const Rows& x,
                                                const LinearWeights& weights,
                                                bool rounded) const {
  const int64_t in = weights.weight.cols, out = weights.weight.rows;
  const int64_t n = static_cast<int64_t>(x.size()) / in;
  Rows from = x, by(weights.weight.data.begin(), weights.weight.data.end());
  if (rounded && round_ != nullptr) {
    from = Rounded(std::move(from), in);
    by = Rounded(std::move(by), in);
  }
  Rows y(n * out);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t o = 0; o < out; ++o) {
      double sum = weights.bias[o];
      for (int64_t k = 0; k < in; ++k) sum += from[i * in + k] * by[o * in + k];
      y[i * out + o] = sum;
    }
  }
  return y;
}

// y = LayerNorm(y + x), or the sum alone for want of a norm.
void ReferenceEncoder::AddNorm(const Rows& x, const NormWeights& norm,
                               Rows* y) const {
  if (norm.gain.empty()) {
    for (size_t i = 0; i < x.size(); ++i) (*y)[i] += x[i];
    return;
  }
  const auto size = static_cast<int64_t>(norm.gain.size());
  for (size_t row = 0; row < y->size(); row += size) {
    double* values = y->data() + row;
    double mean = 0, variance = 0;
    for (int64_t h = 0; h < size; ++h) mean += values[h] += x[row + h];
    mean /= static_cast<double>(size);
    for (int64_t h = 0; h < size; ++h)
      variance += (values[h] - mean) * (values[h] - mean);
    variance /= static_cast<double>(size);
    for (int64_t h = 0; h < size; ++h) {
      values[h] = (values[h] - mean) /
                      std::sqrt(variance + config_.layer_norm_eps) *
                      norm.gain[h] +
                  norm.bias[h];
    }
  }
}

// As transformers: (a, b) of a pair turn to (a cos - b sin, b cos + a sin). The
// frequency and the angle are floats there, and so they are here.
void ReferenceEncoder::Rotate(const TokenSequence& sequence,
                              const Rotation& rotation, Rows* qkv) const {
  const int64_t size = config_.head_size(), half = rotation.dims / 2;
  const int64_t heads = 2 * config_.num_attention_heads;  // of Q and of K
  for (int64_t t = 0; t < sequence.size(); ++t) {
    const int64_t at =
        sequence.position_ids.empty() ? t : sequence.position_ids[t];
    for (int64_t i = 0; i < half; ++i) {
      const auto exponent = 2 * static_cast<float>(i) / rotation.dims;
      const float frequency =
          1 / static_cast<float>(std::pow(rotation.theta, exponent));
      const double angle = static_cast<float>(at) * frequency;
      for (int64_t head = 0; head < heads; ++head) {
        double* x = qkv->data() + t * 3 * config_.hidden_size + head * size;
        const double a = x[i], b = x[i + half];
        x[i] = a * std::cos(angle) - b * std::sin(angle);
        x[i + half] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
}

ReferenceEncoder::Rows ReferenceEncoder::Attention(const Rows& qkv, int64_t n,
                                                   const Reach& reach) const {
  const auto hidden_from = [&](int64_t query, int64_t key) {
    return (reach.left >= 0 && query - key > reach.left) ||
           (reach.right >= 0 && key - query > reach.right);
  };
  const int64_t hidden = config_.hidden_size, size = config_.head_size();
  Rows context(n * hidden);
  std::vector<double> p(n);
  for (int64_t head = 0; head < config_.num_attention_heads; ++head) {
    const double* q = qkv.data() + head * size;
    const double* k = q + hidden;
    const double* v = k + hidden;
    for (int64_t i = 0; i < n; ++i) {
      double highest = -1e300, sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        p[j] = 0;
        for (int64_t d = 0; d < size; ++d)
          p[j] += q[i * 3 * hidden + d] * k[j * 3 * hidden + d];
        p[j] /= std::sqrt(static_cast<double>(size));
        if (outer_.attention_bias.rows > 0)
          p[j] += outer_.attention_bias.Row(Bucket(i, j))[head];
        if (hidden_from(i, j)) p[j] = -1e300;
        highest = std::max(highest, p[j]);
      }
      for (int64_t j = 0; j < n; ++j) sum += p[j] = std::exp(p[j] - highest);
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t d = 0; d < size; ++d) {
          context[i * hidden + head * size + d] +=
              p[j] / sum * v[j * 3 * hidden + d];
        }
      }
    }
  }
  return context;
}

ReferenceEncoder::Rows ReferenceEncoder::FeedForward(
    const Rows& x, const LayerWeights& weights) const {
  Rows inner = Linear(x, weights.feed_forward_in, true);
  if (!config_.gated) {
    for (double& value : inner) value = Activate(value, config_.hidden_act);
    return Linear(inner, weights.feed_forward_out);
  }
  const int64_t f = config_.intermediate_size;
  Rows gated(inner.size() / 2);
  for (size_t i = 0; i < gated.size(); ++i) {
    const double* row = inner.data() + i / f * 2 * f;
    gated[i] = Activate(row[i % f], config_.hidden_act) * row[f + i % f];
  }
  return Linear(gated, weights.feed_forward_out);
}

ReferenceEncoder::Rows ReferenceEncoder::AttentionHalf(
    const TokenSequence& sequence, int32_t layer, const Rows& n) const {
  const LayerWeights& weights = layers_[config_.layer_weights_of(layer)];
  const LayerSpec& spec = config_.layers[layer];
  Rows qkv = Linear(n, weights.qkv);
  if (spec.rotation >= 0)
    Rotate(sequence, config_.rotations[spec.rotation], &qkv);
  return Linear(Attention(qkv, sequence.size(), spec.reach),
                weights.attention_output);
}

std::vector<double> ReferenceEncoder::States(const TokenSequence& sequence,
                                             int32_t layer) const {
  const int64_t n = sequence.size(), columns = config_.table_columns();
  Rows states(n * columns), position(n * columns);
  const int64_t padding = config_.position_offset - 1;
  int64_t next = config_.position_offset;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = !sequence.position_ids.empty() ? sequence.position_ids[i]
                       : sequence.token_ids[i] == padding ? padding
                                                          : next++;
    const int64_t segment =
        sequence.segment_ids.empty() ? 0 : sequence.segment_ids[i];
    for (int64_t e = 0; e < columns; ++e) {
      double& sum = states[i * columns + e];
      sum = token_.Row(sequence.token_ids[i])[e];
      if (segment_.rows > 0) sum += segment_.Row(segment)[e];
      if (position_.rows > 0) position[i * columns + e] = position_.Row(at)[e];
    }
  }
  if (layer == kTableSum) {
    for (size_t i = 0; i < states.size(); ++i) states[i] += position[i];
    return states;
  }
  AddNorm(position, outer_.embeddings.norm, &states);
  if (config_.embedding_size > 0) states = Linear(states, outer_.projection);
  const Rows nothing(n * config_.hidden_size);
  const auto normed = [&](Rows x, const NormWeights& norm) {
    AddNorm(nothing, norm, &x);
    return x;
  };
  const auto add = [](const Rows& x, Rows* y) {
    for (size_t i = 0; i < x.size(); ++i) (*y)[i] += x[i];
  };
  for (int32_t l = 0; l < layer; ++l) {
    const LayerWeights& weights = layers_[config_.layer_weights_of(l)];
    if (config_.pre_norm) {
      add(AttentionHalf(sequence, l, normed(states, weights.attention_norm)),
          &states);
      add(FeedForward(normed(states, weights.feed_forward_norm), weights),
          &states);
    } else {
      add(AttentionHalf(sequence, l, states), &states);
      states = normed(std::move(states), weights.attention_norm);
      add(FeedForward(states, weights), &states);
      states = normed(std::move(states), weights.feed_forward_norm);
    }
  }
  if (config_.pre_norm && layer == config_.num_hidden_layers)
    return normed(std::move(states), outer_.final_norm);
  return states;
}

std::vector<double> ReferenceEncoder::Pooled(const TokenSequence& sequence,
                                             Pooling pooling,
                                             bool normalize) const {
  const Rows states = States(sequence, config_.num_hidden_layers);
  const int64_t n = sequence.size(), hidden = config_.hidden_size;
  Rows pooled(hidden);
  double norm = 0;
  for (int64_t h = 0; h < hidden; ++h) {
    double sum = 0, weighted = 0, highest = states[h];
    for (int64_t i = 0; i < n; ++i) {
      sum += states[i * hidden + h];
      weighted += static_cast<double>(i + 1) * states[i * hidden + h];
      highest = std::max(highest, states[i * hidden + h]);
    }
    const auto count = static_cast<double>(n);
    switch (pooling) {
      case Pooling::kCls:
        pooled[h] = states[h];
        break;
      case Pooling::kMean:
        pooled[h] = sum / count;
        break;
      case Pooling::kMax:
        pooled[h] = highest;
        break;
      case Pooling::kMeanSqrtLen:
        pooled[h] = sum / std::sqrt(count);
        break;
      case Pooling::kWeightedMean:
        pooled[h] = weighted / (count * (count + 1) / 2);
        break;
      case Pooling::kLastToken:
        pooled[h] = states[(n - 1) * hidden + h];
        break;
    }
    norm += pooled[h] * pooled[h];
  }
  if (normalize) {
    for (double& value : pooled) value /= std::max(std::sqrt(norm), 1e-12);
  }
  return pooled;
}

double Cosine(const float* got, const std::vector<double>& want) {
  double dot = 0, a = 0, b = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    dot += got[i] * want[i];
    a += static_cast<double>(got[i]) * got[i];
    b += want[i] * want[i];
  }
  return dot / std::sqrt(a * b);
}

double MaxDifference(const float* got, const std::vector<double>& want) {
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    // Written so that a NaN counts as a difference.
    const double d = std::abs(got[i] - want[i]);
    if (!(d <= worst)) worst = d;
  }
  return worst;
}

}  // namespace encoderd
