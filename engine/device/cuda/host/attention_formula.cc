#include "engine/device/cuda/host/attention_formula.h"

#include <algorithm>
#include <cmath>

namespace encoderd {
namespace cuda {

AttentionByFormula ComputeAttention(const float* qkv, int32_t length,
                                    int32_t heads, int32_t head_size,
                                    const Reach& reach, const float* bias,
                                    int32_t bias_stride) {
  const int64_t hidden = int64_t{heads} * head_size;
  const double scale = 1 / std::sqrt(double{1} * head_size);
  // A sum of head_size products in any order, its scaling, the bias and what is
  // left of it in exp's argument, all in float; twice that.
  const double unit = 2 * (head_size + 4) * 0x1p-24;
  AttentionByFormula result;
  result.context.resize(length * hidden);
  std::vector<double> weights(length);
  for (int32_t i = 0; i < length; ++i) {
    const int32_t first = reach.left < 0 ? 0 : std::max(0, i - reach.left);
    const int32_t last = reach.right < 0 || reach.right > length - 1 - i
                             ? length - 1
                             : i + reach.right;
    for (int32_t head = 0; head < heads; ++head) {
      const int64_t column = int64_t{head} * head_size;
      const float* q = qkv + 3 * hidden * i + column;
      double max = -HUGE_VAL, size = 0, sum = 0;
      for (int32_t j = first; j <= last; ++j) {
        const float* k = qkv + 3 * hidden * j + hidden + column;
        double dot = 0, magnitude = 0;
        for (int32_t d = 0; d < head_size; ++d) {
          const double product = double{q[d]} * k[d];
          dot += product;
          magnitude += std::fabs(product);
        }
        const double more =
            bias == nullptr ? 0 : bias[int64_t{head} * bias_stride + j - i];
        weights[j] = dot * scale + more;
        max = std::max(max, weights[j]);
        size = std::max(size, magnitude * scale + std::fabs(more));
      }
      for (int32_t j = first; j <= last; ++j)
        sum += weights[j] = std::exp(weights[j] - max);
      for (int32_t j = first; j <= last; ++j) {
        const float* v = qkv + 3 * hidden * j + 2 * hidden + column;
        for (int32_t d = 0; d < head_size; ++d)
          result.context[i * hidden + column + d] += weights[j] / sum * v[d];
      }
      // Scores that are off by e change each probability by exp(2 e) at most.
      result.errors.push_back(std::expm1(2 * unit * size));
    }
  }
  return result;
}

}  // namespace cuda
}  // namespace encoderd
