#include "engine/checkpoint/position_inspection.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/types/span.h"
#include "engine/base/dot.h"

namespace encoderd {
namespace {

double Norm(const float* row, int64_t size) {
  double squares = 0;
  for (int64_t h = 0; h < size; ++h) squares += double{row[h]} * row[h];
  return std::sqrt(squares);
}

// The rows at length 1; rows of zeros stay as they are.
HostMatrix UnitRows(const HostMatrix& table, int64_t first, int64_t count) {
  HostMatrix unit = {count, table.cols, std::vector<float>(count * table.cols)};
  for (int64_t i = 0; i < count; ++i) {
    const float* row = table.Row(first + i);
    const double norm = Norm(row, table.cols);
    if (norm == 0) continue;
    for (int64_t h = 0; h < table.cols; ++h) {
      unit.data[i * table.cols + h] = static_cast<float>(row[h] / norm);
    }
  }
  return unit;
}

double Cosine(const HostMatrix& unit, int64_t a, int64_t b) {
  return std::clamp(Dot(unit.Row(a), unit.Row(b), unit.cols), -1.0, 1.0);
}

// The cosines of the rows that are `distance` apart.
std::vector<double> PairCosines(const HostMatrix& unit, int64_t distance) {
  std::vector<double> cosines;
  for (int64_t i = 0; i + distance < unit.rows; ++i) {
    cosines.push_back(Cosine(unit, i, i + distance));
  }
  return cosines;
}

double Mean(absl::Span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

// The mean of the rows from `first` on that are not zeros.
std::vector<double> MeanRow(const HostMatrix& unit, int64_t first) {
  std::vector<double> mean(unit.cols, 0.0);
  int64_t rows = 0;
  for (int64_t i = first; i < unit.rows; ++i) {
    const float* row = unit.Row(i);
    if (Norm(row, unit.cols) == 0) continue;
    ++rows;
    for (int64_t h = 0; h < unit.cols; ++h) mean[h] += row[h];
  }
  for (double& value : mean)
    value /= static_cast<double>(std::max(rows, int64_t{1}));
  return mean;
}

// The rows less `center`, at length 1; rows of zeros stay as they are.
HostMatrix Less(const std::vector<double>& center, HostMatrix unit) {
  for (int64_t i = 0; i < unit.rows; ++i) {
    float* row = unit.data.data() + i * unit.cols;
    if (Norm(row, unit.cols) == 0) continue;
    for (int64_t h = 0; h < unit.cols; ++h) {
      row[h] = static_cast<float>(row[h] - center[h]);
    }
  }
  return UnitRows(unit, 0, unit.rows);
}

// A part of the rows, judged by itself.
struct Part {
  double mean = 0;  // cosine of neighbors, the part's mean taken out
  double threshold = 0;
};

Part JudgePart(const HostMatrix& table, int64_t first, int64_t count) {
  const HostMatrix unit = UnitRows(table, first, count);
  return {Mean(PairCosines(Less(MeanRow(unit, 0), unit), 1)),
          RandomCosineThreshold(count - 1, table.cols)};
}

// How many leading values have the greatest sum / sqrt(count).
int64_t ChangePoint(const std::vector<double>& cosines) {
  double sum = 0;
  double best = -1;
  int64_t change = 0;
  for (size_t k = 0; k < cosines.size(); ++k) {
    sum += cosines[k];
    const double weight = sum / std::sqrt(static_cast<double>(k + 1));
    if (weight > best) {
      best = weight;
      change = static_cast<int64_t>(k) + 1;
    }
  }
  return change;
}

// Looks for a change in the rows, whose random part has at least `least_rows`
// rows. cosines: of neighbors, what these random rows share taken out.
bool FindChange(const HostMatrix& unit, const std::vector<double>& cosines,
                int64_t least_rows, int64_t first, PositionInspection* result) {
  const int64_t pairs = ChangePoint(cosines);
  const int64_t head = pairs + 1, tail = unit.rows - head;  // rows
  if (pairs < kMinPairs || tail < least_rows) return false;
  const Part trained = JudgePart(unit, 0, head);
  const Part random = JudgePart(unit, head, tail);
  if (trained.mean <= trained.threshold || random.mean > random.threshold ||
      trained.mean - random.mean <= random.threshold) {
    return false;
  }
  result->verdict = PositionVerdict::kPartlyTrained;
  result->verdict_cosine = trained.mean;
  result->threshold = trained.threshold;
  result->change_row = first + head;
  return true;
}

// centered_mean: of neighbors, the mean of all rows taken out.
void Judge(const HostMatrix& unit, double centered_mean, int64_t first,
           PositionInspection* result) {
  const int64_t pairs = unit.rows - 1;
  if (pairs < kMinPairs) return;
  const int64_t quarter = std::max(kMinPairs + 1, unit.rows / 4);
  const std::vector<double> shared = MeanRow(unit, unit.rows - quarter);
  if (FindChange(unit, PairCosines(unit, 1), kMinPairs + 1, first, result) ||
      FindChange(unit, PairCosines(Less(shared, unit), 1), quarter, first,
                 result)) {
    return;
  }
  result->verdict_cosine = centered_mean;
  result->threshold = RandomCosineThreshold(pairs, unit.cols);
  result->verdict = centered_mean > result->threshold
                        ? PositionVerdict::kTrained
                        : PositionVerdict::kLooksRandom;
}

}  // namespace

double RandomCosineThreshold(int64_t pairs, int64_t hidden_size) {
  const double deviation =
      1.0 / std::sqrt(static_cast<double>(pairs * hidden_size));
  return std::min(1.0, kThresholdDeviations * deviation);
}

PositionInspection InspectPositionRows(const HostMatrix& table, int64_t first,
                                       int64_t count) {
  PositionInspection result;
  for (int64_t i = 0; i < count; ++i) {
    result.norms.push_back(Norm(table.Row(first + i), table.cols));
  }
  const HostMatrix unit = UnitRows(table, first, count);
  const HostMatrix centered = Less(MeanRow(unit, 0), unit);
  for (int64_t distance = 1; distance < count; distance *= 2) {
    result.profile.push_back({distance, Mean(PairCosines(unit, distance)),
                              Mean(PairCosines(centered, distance))});
  }
  if (count > 1) Judge(unit, result.profile[0].centered_mean, first, &result);
  return result;
}

std::vector<float> PositionCosines(const HostMatrix& table, int64_t first,
                                   int64_t count) {
  const HostMatrix unit = UnitRows(table, first, count);
  std::vector<float> cosines(count * count);
  for (int64_t a = 0; a < count; ++a) {
    for (int64_t b = a; b < count; ++b) {
      cosines[a * count + b] = cosines[b * count + a] =
          static_cast<float>(Cosine(unit, a, b));
    }
  }
  return cosines;
}

}  // namespace encoderd
