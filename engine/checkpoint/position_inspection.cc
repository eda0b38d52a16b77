#include "engine/checkpoint/position_inspection.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

// cosines: of row i and row i+1.
void Judge(const std::vector<double>& cosines, int64_t first,
           int64_t hidden_size, PositionInspection* result) {
  const auto pairs = static_cast<int64_t>(cosines.size());
  if (pairs == 0) return;
  const double total = std::accumulate(cosines.begin(), cosines.end(), 0.0);
  result->verdict_cosine = total / static_cast<double>(pairs);
  result->threshold = RandomCosineThreshold(pairs, hidden_size);
  result->verdict = result->verdict_cosine > result->threshold
                        ? PositionVerdict::kTrained
                        : PositionVerdict::kLooksRandom;

  const int64_t head = ChangePoint(cosines);
  const int64_t tail = pairs - head;
  if (tail < kMinTailPairs) return;
  const double head_sum =
      std::accumulate(cosines.begin(), cosines.begin() + head, 0.0);
  const double head_mean = head_sum / static_cast<double>(head);
  const double tail_mean = (total - head_sum) / static_cast<double>(tail);
  const double head_threshold = RandomCosineThreshold(head, hidden_size);
  const double tail_threshold = RandomCosineThreshold(tail, hidden_size);
  if (head_mean <= head_threshold || tail_mean > tail_threshold ||
      head_mean - tail_mean <= tail_threshold) {
    return;
  }
  result->verdict = PositionVerdict::kPartlyTrained;
  result->verdict_cosine = head_mean;
  result->threshold = head_threshold;
  result->change_row = first + head + 1;
}

}  // namespace

const char* PositionVerdictName(PositionVerdict verdict) {
  switch (verdict) {
    case PositionVerdict::kUndecided:
      return "undecided";
    case PositionVerdict::kTrained:
      return "trained";
    case PositionVerdict::kLooksRandom:
      return "looks random";
    case PositionVerdict::kPartlyTrained:
      return "partly trained";
  }
  return "unknown";
}

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
  for (int64_t distance = 1; distance < count; distance *= 2) {
    std::vector<double> cosines;
    for (int64_t i = 0; i + distance < count; ++i) {
      cosines.push_back(Cosine(unit, i, i + distance));
    }
    const double sum = std::accumulate(cosines.begin(), cosines.end(), 0.0);
    result.profile.push_back(
        {distance, sum / static_cast<double>(cosines.size())});
    if (distance == 1) Judge(cosines, first, table.cols, &result);
  }
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
