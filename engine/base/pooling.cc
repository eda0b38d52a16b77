#include "engine/base/pooling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace encoderd {
namespace {

constexpr std::pair<Pooling, const char*> kNames[] = {
    {Pooling::kCls, "cls"},
    {Pooling::kMean, "mean"},
    {Pooling::kMax, "max"},
    {Pooling::kMeanSqrtLen, "mean_sqrt_len"},
    {Pooling::kWeightedMean, "weightedmean"},
    {Pooling::kLastToken, "lasttoken"},
};

}  // namespace

const char* PoolingName(Pooling pooling) {
  for (const auto& [value, name] : kNames) {
    if (value == pooling) return name;
  }
  return "unknown";
}

absl::StatusOr<Pooling> PoolingFromName(absl::string_view name) {
  for (const auto& [value, known] : kNames) {
    if (name == known) return value;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "pooling \"", name, "\" is unknown; known: ",
      absl::StrJoin(kNames, ", ", [](std::string* out, const auto& known) {
        absl::StrAppend(out, known.second);
      })));
}

int64_t PooledRow(Pooling pooling, int64_t n) {
  if (pooling == Pooling::kCls) return 0;
  return pooling == Pooling::kLastToken ? n - 1 : -1;
}

void PoolStates(Pooling pooling, const float* states, int64_t n,
                int64_t hidden_size, float* out) {
  const int64_t row = PooledRow(pooling, n);
  if (row >= 0) {
    std::copy_n(states + row * hidden_size, hidden_size, out);
    return;
  }
  std::copy(states, states + hidden_size, out);
  double weight_sum = 1.0;
  for (int64_t i = 1; i < n; ++i) {
    const float* row = states + i * hidden_size;
    if (pooling == Pooling::kMax) {
      // A NaN stays: a result that has one is no answer.
      for (int64_t h = 0; h < hidden_size; ++h)
        out[h] = row[h] > out[h] || row[h] != row[h] ? row[h] : out[h];
    } else if (pooling == Pooling::kWeightedMean) {
      const float weight = static_cast<float>(i + 1);
      weight_sum += weight;
      for (int64_t h = 0; h < hidden_size; ++h) out[h] += weight * row[h];
    } else {
      for (int64_t h = 0; h < hidden_size; ++h) out[h] += row[h];
    }
  }
  if (pooling == Pooling::kMax) return;
  if (pooling == Pooling::kMean) weight_sum = static_cast<double>(n);
  if (pooling == Pooling::kMeanSqrtLen)
    weight_sum = std::sqrt(static_cast<double>(n));
  const float divisor = static_cast<float>(weight_sum);
  for (int64_t h = 0; h < hidden_size; ++h) out[h] /= divisor;
}

void NormalizeL2(float* values, int64_t count) {
  double squares = 0.0;
  for (int64_t i = 0; i < count; ++i)
    squares += static_cast<double>(values[i]) * values[i];
  const double norm = std::max(std::sqrt(squares), 1e-12);
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(values[i] / norm);
}

}  // namespace encoderd
