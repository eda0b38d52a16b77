// Heatmaps of matrices, side by side, with axes. Internal to encoderctl.
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
  std::string title;         // capitals and digits (Image::Text)
  std::string column_title;  // what runs to the right: "COLUMN"
  absl::Span<const float> values;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t first_row = 0;     // the number of the first row, and of the first
  int64_t first_column = 0;  // column
  float limit = 1;           // the colour scale ends at -limit and limit
};

// Blue below 0, white at 0, red above; values past the limit take its colour.
Color HeatColor(float value, float limit);

// A limit that shows the bulk of the values: one in 200 is larger. Never 0.
float BulkLimit(absl::Span<const float> values);

// One square or more for each value, ticks with row and column numbers, a
// colour scale below each map.
Image DrawHeatmaps(absl::Span<const Heatmap> maps);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_HEATMAP_H_
