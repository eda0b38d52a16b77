// Heatmaps of matrices, side by side, with axes, color bars and a title.
// Internal to encoderctl.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_HEATMAP_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_HEATMAP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/cpp/encoderctl/image.h"

namespace encoderd::ctl {

// A matrix [rows,columns], row-major, and how it is to be read.
struct Heatmap {
  std::string title;
  std::string quantity;     // what the color bar shows: "cosine"
  std::string column_axis;  // what runs to the right: "column"; down run rows
  absl::Span<const float> values;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t first_row = 0;     // the number of the first row, and of the first
  int64_t first_column = 0;  // column
  float limit = 1;           // the color bar ends at -limit and limit
  int64_t marked_rows = 0;   // row numbers below this are marked on the axis
  int64_t marked_columns = 0;
};

// Blue below 0, white at 0, red above; values past the limit take its color.
Color HeatColor(float value, float limit);

// A limit that shows the bulk of the values: one in 200 is larger. Never 0.
float BulkLimit(absl::Span<const float> values);

// What the colors leave out: "0.5 % clipped", "none clipped".
std::string ClippedShare(absl::Span<const float> values, float limit);

// The cosines [n,n] of rows with their mean taken out, from those of the rows
// themselves: with c of rows i and j, r_i the mean of row i and t that of all,
// rows at length 1 less their mean have the product c - r_i - r_j + t. Rows of
// zeros, which have cosine 0 with themselves, do not count and stay 0.
std::vector<float> CenterCosines(absl::Span<const float> cosines, int64_t rows);

// One square or more for each value, ticks with row and column numbers, a color
// bar below each map; the lines of the title above all.
Image DrawHeatmaps(absl::Span<const std::string> title,
                   absl::Span<const Heatmap> maps);

// The color of the marks on an axis.
inline constexpr Color kMarkColor = {255, 140, 0};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_HEATMAP_H_
