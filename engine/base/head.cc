#include "engine/base/head.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/pooling.h"

namespace encoderd {
namespace {

constexpr double kLayerNormEps = 1e-5;  // torch.nn.LayerNorm's own

// Sums in eight lanes: quick, and in an order that only the size decides.
double Dot(const float* a, const float* b, int64_t size) {
  constexpr int64_t kLanes = 8;
  float sums[kLanes] = {};
  const int64_t whole = size / kLanes * kLanes;
  for (int64_t h = 0; h < whole; h += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) sums[l] += a[h + l] * b[h + l];
  }
  double sum = 0;
  for (const float lane : sums) sum += lane;
  for (int64_t h = whole; h < size; ++h) sum += double{a[h]} * b[h];
  return sum;
}

void Dense(const Head::Layer& layer, const float* x, float* y) {
  const HeadModule& module = layer.module;
  for (int64_t o = 0; o < module.out; ++o) {
    double sum = Dot(layer.weight.data() + o * module.in, x, module.in);
    if (!layer.bias.empty()) sum += layer.bias[o];
    y[o] = static_cast<float>(module.tanh ? std::tanh(sum) : sum);
  }
}

void LayerNorm(const Head::Layer& layer, const float* x, float* y) {
  const int64_t size = layer.module.in;
  double mean = 0, variance = 0;
  for (int64_t h = 0; h < size; ++h) mean += x[h];
  mean /= static_cast<double>(size);
  for (int64_t h = 0; h < size; ++h) variance += (x[h] - mean) * (x[h] - mean);
  variance /= static_cast<double>(size);
  const double factor = 1.0 / std::sqrt(variance + kLayerNormEps);
  for (int64_t h = 0; h < size; ++h) {
    y[h] = static_cast<float>((x[h] - mean) * factor * layer.weight[h] +
                              layer.bias[h]);
  }
}

}  // namespace

Head::Head(std::vector<Layer> layers) : layers_(std::move(layers)) {
  for (const Layer& layer : layers_) {
    widest_ = std::max({widest_, layer.module.in, layer.module.out});
  }
}

void Head::Apply(std::vector<float>* x, std::vector<float>* y) const {
  for (const Layer& layer : layers_) {
    switch (layer.module.kind) {
      case HeadModule::Kind::kNormalize:
        NormalizeL2(x->data(), layer.module.in);
        continue;
      case HeadModule::Kind::kDense:
        Dense(layer, x->data(), y->data());
        break;
      case HeadModule::Kind::kLayerNorm:
        LayerNorm(layer, x->data(), y->data());
        break;
    }
    std::swap(*x, *y);
  }
}

}  // namespace encoderd
