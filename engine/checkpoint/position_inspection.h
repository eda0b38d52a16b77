// What the rows of a position table look like, and whether they look like the
// outcome of training or like their random start. Pure functions of the rows.
//
// Training makes neighboring positions alike; a random table has no such
// order. The figure is the mean cosine of neighboring rows. For rows of H
// independent values of mean 0 the cosine of one pair has mean 0 and standard
// deviation 1 / sqrt(H), whatever the values' scale, and the cosines of
// neighboring pairs do not go along with each other, so the mean over k pairs
// has 1 / sqrt(H k). The threshold is six of these: a random table passes one
// test in a billion. It is 0.014 for the 511 pairs of a table [512,384] and
// 0.53 for 2 pairs of H = 64: few rows prove little.
//
// A table trained up to some row only: the pairs before the change have a mean
// above 0, those after it of 0. The number k of leading pairs for which
// sum / sqrt(k) is greatest is the least-squares place of the change. It is
// named when the pairs behind it (at least kMinTailPairs) stay below their own
// threshold and the mean in front is above theirs by more than that.
#ifndef ENCODERD_ENGINE_CHECKPOINT_POSITION_INSPECTION_H_
#define ENCODERD_ENGINE_CHECKPOINT_POSITION_INSPECTION_H_

#include <cstdint>
#include <vector>

#include "engine/base/tensor.h"

namespace encoderd {

inline constexpr double kThresholdDeviations = 6.0;
inline constexpr int64_t kMinTailPairs = 8;

enum class PositionVerdict {
  kUndecided,      // fewer than two rows
  kTrained,        // neighbors are alike
  kLooksRandom,    // they are not
  kPartlyTrained,  // alike before change_row, not from there on
};
const char* PositionVerdictName(PositionVerdict verdict);  // "trained", ...

struct NeighbourCosine {
  int64_t distance = 0;  // 1, 2, 4, ...
  double mean = 0;       // over all pairs of rows this far apart
};

struct PositionInspection {
  std::vector<double> norms;             // [n] Euclidean
  std::vector<NeighbourCosine> profile;  // distances below n
  PositionVerdict verdict = PositionVerdict::kUndecided;
  double verdict_cosine = 0;  // mean at distance 1; of the rows before
                              // change_row when partly trained
  double threshold = 0;       // what it was compared with
  int64_t change_row = 0;     // of the table; partly trained only
};

// Rows first .. first+count-1 of the table [P,H], which has them. A cosine with
// a row of zeros is 0.
PositionInspection InspectPositionRows(const HostMatrix& table, int64_t first,
                                       int64_t count);

// Cosines of all pairs of these rows, [count,count] row-major, symmetric, in
// -1..1. Takes count^2 H / 2 multiplications.
std::vector<float> PositionCosines(const HostMatrix& table, int64_t first,
                                   int64_t count);

// Six deviations of the mean cosine of `pairs` random neighbors; at most 1.
double RandomCosineThreshold(int64_t pairs, int64_t hidden_size);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_CHECKPOINT_POSITION_INSPECTION_H_
