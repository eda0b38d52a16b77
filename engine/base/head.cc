#include "engine/base/head.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/dot.h"
#include "engine/base/pooling.h"

namespace encoderd {
namespace {

constexpr double kLayerNormEps = 1e-5;  // torch.nn.LayerNorm's own

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
