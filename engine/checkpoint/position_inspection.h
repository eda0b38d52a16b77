// What the rows of a position table look like, and whether they look like the
// outcome of training or like their random start. Pure functions of the rows.
//
// Training makes neighboring positions alike; a random table has no order. But
// rows may also be alike because they share a vector, wherever they are, and a
// shared vector proves nothing. So the figure is the mean cosine of neighboring
// rows with their mean taken out: rows at length 1 (so that no long row, such
// as one for padding, makes the mean), less their mean, at length 1 again. Rows
// of zeros stay zeros and do not count in the mean.
//
// Let the n rows be independent, each of H independent values about some shared
// vector, of any scale. Taking the mean out leaves every two rows a correlation
// of -1 / (n - 1), because the rows then sum to 0; so the figure has this mean,
// and about the standard deviation 1 / sqrt(H (n - 1)): the serial correlation
// of an unordered sample, over H columns (A. Wald and J. Wolfowitz, "An exact
// test for randomness in the non-parametric case based on serial correlation",
// Ann. Math. Statist. 14, 1943). The threshold is six of these above 0: a
// random table passes one test in a billion, or less. It is 0.014 for the 511
// pairs of a table [512,384]. Fewer than kMinPairs pairs prove nothing: once
// their mean is out, three rows on a line are not alike.
//
// A table trained up to some row only: the pairs before the change have a mean
// above 0, those after it of 0, if what the random rows share is taken out of
// all. They share nothing, or what the last quarter of the rows has in common;
// both are tried. The number k of leading pairs for which sum / sqrt(k) is
// greatest is the least-squares place of the change. It is named when, each
// part less its own mean, the rows behind it stay below their threshold and the
// figure in front is above its own, and above theirs by more than that.
#ifndef ENCODERD_ENGINE_CHECKPOINT_POSITION_INSPECTION_H_
#define ENCODERD_ENGINE_CHECKPOINT_POSITION_INSPECTION_H_

#include <cstdint>
#include <vector>

#include "engine/base/tensor.h"

namespace encoderd {

inline constexpr double kThresholdDeviations = 6.0;
inline constexpr int64_t kMinPairs = 8;  // of rows that are judged

enum class PositionVerdict {
  kUndecided,      // fewer than kMinPairs pairs
  kTrained,        // neighbors are alike
  kLooksRandom,    // they are not
  kPartlyTrained,  // alike before change_row, not from there on
};

struct NeighbourCosine {
  int64_t distance = 0;      // 1, 2, 4, ...
  double mean = 0;           // over all pairs of rows this far apart
  double centered_mean = 0;  // the same of the rows with their mean taken out
};

struct PositionInspection {
  std::vector<double> norms;             // [n] Euclidean
  std::vector<NeighbourCosine> profile;  // distances below n
  PositionVerdict verdict = PositionVerdict::kUndecided;
  double verdict_cosine = 0;  // centered mean at distance 1; of the rows before
                              // change_row when partly trained; 0: undecided
  double threshold = 0;       // what it was compared with; 0: undecided
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
