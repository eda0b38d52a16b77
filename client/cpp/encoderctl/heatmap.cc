#include "client/cpp/encoderctl/heatmap.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace encoderd::ctl {
namespace {

constexpr int kMargin = 16;                    // around all
constexpr int kLine = Image::kTextHeight + 6;  // of text
constexpr int kLeft = 72;                      // for row numbers
constexpr int kTop = 2 * kLine;                // for a map's title and axis
constexpr int kBar = 12;                       // height of the color bar
constexpr int kBottom = 5 * kLine + kBar;  // column numbers, axis, color bar
constexpr int kTick = 6;
constexpr int kMark = 8;          // width of a mark on an axis
constexpr int kLeastMark = 4;     // and its length at least
constexpr int kLeastWidth = 320;  // of a map with its color bar
constexpr int64_t kWanted = 384;  // points that a map should have at least

// Points for each value: small matrices are drawn larger.
int CellSize(int64_t extent) {
  return static_cast<int>(std::max<int64_t>(1, kWanted / extent));
}

// A round step that gives some eight ticks.
int64_t TickStep(int64_t extent) {
  int64_t step = 1;
  for (int64_t power = 1; step * 8 < extent; power *= 10) {
    for (const int64_t digit : {1, 2, 5}) {
      step = digit * power;
      if (step * 8 >= extent) break;
    }
  }
  return step;
}

struct Size {
  int cell_width;
  int cell_height;
  int width;  // of the map alone
  int height;
  int least_width;  // for the title and the color bar
  int all_width() const { return kLeft + std::max(width, least_width); }
  int all_height() const { return kTop + height + kBottom; }
};

Size SizeOf(const Heatmap& map) {
  const int wide = CellSize(map.columns), high = CellSize(map.rows);
  return {wide, high, wide * static_cast<int>(map.columns),
          high * static_cast<int>(map.rows),
          std::max(kLeastWidth, Image::TextWidth(map.title))};
}

// A number at its tick: calls draw(points from the start, label).
template <typename Draw>
void ForTicks(int64_t first, int64_t count, int cell, Draw draw) {
  const int64_t step = TickStep(count);
  for (int64_t i = 0; i < count; ++i) {
    if ((first + i) % step == 0) {
      draw(static_cast<int>(i) * cell, absl::StrCat(first + i));
    }
  }
}

// The points that the numbers below `marked` take.
int MarkLength(int64_t marked, int64_t first, int64_t count, int cell) {
  const int64_t shown = std::clamp<int64_t>(marked - first, 0, count);
  return shown == 0 ? 0 : std::max(kLeastMark, static_cast<int>(shown) * cell);
}

// (x, y): the upper left corner of the map alone, here and below.
void DrawAxes(const Heatmap& map, const Size& size, int x, int y,
              Image* image) {
  const auto text_end = [image](int end, int top, const std::string& text) {
    image->Text(end - Image::TextWidth(text), top, text);
  };
  image->Text(x, y - kTop, map.title);
  text_end(x - kTick, y - kLine - Image::kTextHeight / 2, "row");
  ForTicks(map.first_row, map.rows, size.cell_height,
           [&](int at, const std::string& label) {
             image->Fill(x - kTick, y + at, kTick, 1, {});
             text_end(x - kMark - kTick, y + at - Image::kTextHeight / 3,
                      label);
           });
  const int bottom = y + size.height;
  ForTicks(map.first_column, map.columns, size.cell_width,
           [&](int at, const std::string& label) {
             image->Fill(x + at, bottom, 1, kTick, {});
             image->Text(x + at - Image::TextWidth(label) / 2,
                         bottom + kMark + 4, label);
           });
  image->Text(x, bottom + kMark + kLine, map.column_axis);
  image->Fill(
      x - kMark, y, kMark,
      MarkLength(map.marked_rows, map.first_row, map.rows, size.cell_height),
      kMarkColor);
  image->Fill(x, bottom,
              MarkLength(map.marked_columns, map.first_column, map.columns,
                         size.cell_width),
              kMark, kMarkColor);
}

// From (x, y) on: the bar, its ends and middle, what it shows and leaves out.
void DrawColorBar(const Heatmap& map, int width, int x, int y, Image* image) {
  for (int i = 0; i < width; ++i) {
    const float share = static_cast<float>(i) / static_cast<float>(width - 1);
    image->Fill(x + i, y, 1, kBar,
                HeatColor(map.limit * (2 * share - 1), map.limit));
  }
  const auto text = [&](double share, int top, const std::string& label) {
    const int room = width - Image::TextWidth(label);
    image->Text(x + static_cast<int>(share * room), top, label);
  };
  const int line = y + kBar + 4;
  text(0, line, absl::StrFormat("-%.3g", map.limit));
  text(0.5, line, "0");
  text(1, line, absl::StrFormat("%.3g", map.limit));
  text(0.5, line + kLine,
       absl::StrCat(map.quantity, ", ", ClippedShare(map.values, map.limit)));
}

void Draw(const Heatmap& map, int x, int y, Image* image) {
  const Size size = SizeOf(map);
  for (int64_t r = 0; r < map.rows; ++r) {
    for (int64_t c = 0; c < map.columns; ++c) {
      image->Fill(x + static_cast<int>(c) * size.cell_width,
                  y + static_cast<int>(r) * size.cell_height, size.cell_width,
                  size.cell_height,
                  HeatColor(map.values[r * map.columns + c], map.limit));
    }
  }
  DrawAxes(map, size, x, y, image);
  DrawColorBar(map, std::max(size.width, kLeastWidth), x,
               y + size.height + kMark + 2 * kLine + 4, image);
}

}  // namespace

Color HeatColor(float value, float limit) {
  const float share = std::clamp(value / limit, -1.0f, 1.0f);
  if (std::isnan(share)) return {128, 128, 128};
  const auto faded =
      static_cast<uint8_t>(std::lround(255.0f * (1.0f - std::abs(share))));
  return share < 0 ? Color{faded, faded, 255} : Color{255, faded, faded};
}

float BulkLimit(absl::Span<const float> values) {
  std::vector<float> sizes;
  sizes.reserve(values.size());
  for (const float value : values) sizes.push_back(std::abs(value));
  if (sizes.empty()) return 1;
  const auto at =
      sizes.begin() + static_cast<int64_t>(sizes.size()) * 199 / 200;
  std::nth_element(sizes.begin(), at, sizes.end());
  return *at > 0 ? *at : 1;
}

std::string ClippedShare(absl::Span<const float> values, float limit) {
  // A rounded limit is no clipping.
  const float end = limit * (1 + 1e-5f);
  const auto clipped =
      std::count_if(values.begin(), values.end(),
                    [end](float value) { return std::abs(value) > end; });
  if (clipped == 0) return "none clipped";
  return absl::StrFormat("%.2g %% clipped",
                         100.0 * static_cast<double>(clipped) /
                             static_cast<double>(values.size()));
}

std::vector<float> CenterCosines(absl::Span<const float> cosines,
                                 int64_t rows) {
  constexpr double kLeastLength = 1e-6;  // squared; below, floats say nothing
  std::vector<double> mean(rows, 0.0);
  double counted = 0, all = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < rows; ++j) mean[i] += cosines[i * rows + j];
    all += mean[i];
    if (cosines[i * rows + i] > 0) ++counted;
  }
  counted = std::max(counted, 1.0);
  for (double& value : mean) value /= counted;
  all /= counted * counted;
  const auto product = [&](int64_t i, int64_t j) {
    return cosines[i * rows + j] - mean[i] - mean[j] + all;
  };
  std::vector<double> scale(rows, 0.0);  // 1 / length
  for (int64_t i = 0; i < rows; ++i) {
    const double squared = product(i, i);
    if (cosines[i * rows + i] > 0 && squared > kLeastLength) {
      scale[i] = 1 / std::sqrt(squared);
    }
  }
  std::vector<float> centered(cosines.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < rows; ++j) {
      centered[i * rows + j] = static_cast<float>(
          std::clamp(product(i, j) * scale[i] * scale[j], -1.0, 1.0));
    }
  }
  return centered;
}

Image DrawHeatmaps(absl::Span<const std::string> title,
                   absl::Span<const Heatmap> maps) {
  int width = 0, height = 0;
  for (const Heatmap& map : maps) {
    const Size size = SizeOf(map);
    width += size.all_width() + kMargin;
    height = std::max(height, size.all_height());
  }
  for (const std::string& line : title) {
    width = std::max(width, Image::TextWidth(line) + kMargin);
  }
  const int lines = static_cast<int>(title.size()) * kLine + kMargin / 2;
  Image image(width + kMargin, height + lines + 2 * kMargin);
  int y = kMargin;
  for (const std::string& line : title) {
    image.Text(kMargin, y, line);
    y += kLine;
  }
  int x = kMargin;
  for (const Heatmap& map : maps) {
    Draw(map, x + kLeft, kMargin + lines + kTop, &image);
    x += SizeOf(map).all_width() + kMargin;
  }
  return image;
}

}  // namespace encoderd::ctl
