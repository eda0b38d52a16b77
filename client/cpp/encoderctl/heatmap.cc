#include "client/cpp/encoderctl/heatmap.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace encoderd::ctl {
namespace {

constexpr int kLeft = 48;    // room for row numbers
constexpr int kTop = 24;     // for the title
constexpr int kBottom = 64;  // for column numbers and the colour scale
constexpr int kRight = 24;
constexpr int kTick = 4;
constexpr int kScale = 128;       // width of the colour scale
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
};

Size SizeOf(const Heatmap& map) {
  const int wide = CellSize(map.columns), high = CellSize(map.rows);
  return {wide, high, wide * static_cast<int>(map.columns),
          high * static_cast<int>(map.rows)};
}

void DrawAxes(const Heatmap& map, const Size& size, int x, int y,
              Image* image) {
  const int64_t row_step = TickStep(map.rows);
  for (int64_t r = 0; r < map.rows; ++r) {
    if ((map.first_row + r) % row_step != 0) continue;
    const std::string label = absl::StrCat(map.first_row + r);
    const int at = y + static_cast<int>(r) * size.cell_height;
    image->Fill(x - kTick, at, kTick, 1, {});
    image->Text(x - kTick - 2 - Image::TextWidth(label),
                at - Image::kTextHeight / 2, label);
  }
  const int bottom = y + size.height;
  const int64_t column_step = TickStep(map.columns);
  for (int64_t c = 0; c < map.columns; ++c) {
    if ((map.first_column + c) % column_step != 0) continue;
    const std::string label = absl::StrCat(map.first_column + c);
    const int at = x + static_cast<int>(c) * size.cell_width;
    image->Fill(at, bottom, 1, kTick, {});
    image->Text(at - Image::TextWidth(label) / 2, bottom + kTick + 2, label);
  }
  image->Text(x + size.width - Image::TextWidth(map.column_title),
              bottom + kTick + 12, map.column_title);
}

void DrawScale(const Heatmap& map, int x, int y, Image* image) {
  for (int i = 0; i < kScale; ++i) {
    const float value =
        map.limit *
        (2.0f * static_cast<float>(i) / static_cast<float>(kScale - 1) - 1.0f);
    image->Fill(x + i, y, 1, 8, HeatColor(value, map.limit));
  }
  const std::string high = absl::StrFormat("%.3g", map.limit);
  image->Text(x, y + 11, "-" + high);
  image->Text(x + kScale / 2 - 3, y + 11, "0");
  image->Text(x + kScale - Image::TextWidth(high), y + 11, high);
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
  image->Text(x, y - Image::kTextHeight - 6, map.title);
  image->Text(x - kLeft + 2, y - Image::kTextHeight - 6, "ROW");
  DrawAxes(map, size, x, y, image);
  DrawScale(map, x, y + size.height + 36, image);
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

Image DrawHeatmaps(absl::Span<const Heatmap> maps) {
  int width = 0, height = 0;
  for (const Heatmap& map : maps) {
    const Size size = SizeOf(map);
    width += kLeft + std::max(size.width, kScale) + kRight;
    height = std::max(height, kTop + size.height + kBottom);
  }
  Image image(width, height);
  int x = kLeft;
  for (const Heatmap& map : maps) {
    Draw(map, x, kTop, &image);
    x += std::max(SizeOf(map).width, kScale) + kRight + kLeft;
  }
  return image;
}

}  // namespace encoderd::ctl
