#include "client/cpp/encoderctl/heatmap.h"

#include <gtest/gtest.h>

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#include <stb/stb_image.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "client/cpp/encoderctl/image.h"
#include "tests/support/temp_folder.h"

namespace encoderd::ctl {
namespace {

constexpr Color kWhite = {255, 255, 255};
constexpr Color kBlack = {0, 0, 0};
constexpr Color kRed = {255, 0, 0};
constexpr Color kBlue = {0, 0, 255};

// The points where `image` has this color.
std::vector<std::pair<int, int>> Points(const Image& image, Color color) {
  std::vector<std::pair<int, int>> points;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      if (image.At(x, y) == color) points.emplace_back(x, y);
    }
  }
  return points;
}

TEST(ImageTest, APngReadsBackPointByPoint) {
  Image image(37, 23);
  image.Fill(3, 4, 5, 6, {10, 20, 30});
  image.Text(12, 2, "A1");
  image.Fill(36, 22, 9, 9, {1, 2, 3});  // half outside
  image.Fill(-5, -5, 6, 6, {4, 5, 6});
  const TempFolder folder;
  const std::string file = folder.Path("image.png");
  ASSERT_TRUE(image.WritePng(file).ok());
  int width = 0, height = 0, channels = 0;
  const std::unique_ptr<unsigned char, decltype(&stbi_image_free)> rgb(
      stbi_load(file.c_str(), &width, &height, &channels, 3), &stbi_image_free);
  ASSERT_NE(rgb, nullptr);
  ASSERT_EQ(width, 37);
  ASSERT_EQ(height, 23);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const uint8_t* point = rgb.get() + 3 * (y * width + x);
      ASSERT_TRUE(image.At(x, y) == (Color{point[0], point[1], point[2]}))
          << x << "," << y;
    }
  }
}

TEST(ImageTest, APngThatCannotBeWrittenIsAnError) {
  const Image image(600, 600);
  EXPECT_EQ(image.WritePng("/none/x.png").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(image.WritePng("/dev/full").code(), absl::StatusCode::kDataLoss);
}

TEST(ImageTest, LettersAreDrawnWithinTheirSizeAndDiffer) {
  const auto drawn = [](const std::string& text) {
    Image image(200, 40);
    image.Text(10, 10, text);
    const auto points = Points(image, kBlack);
    for (const auto& [x, y] : points) {
      EXPECT_GE(x, 10) << text;
      EXPECT_LT(x, 10 + Image::TextWidth(text)) << text;
      EXPECT_GE(y, 10) << text;
      EXPECT_LT(y, 10 + Image::kTextHeight) << text;
    }
    return points;
  };
  std::vector<std::vector<std::pair<int, int>>> seen;
  for (const char c : std::string("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-+%"
                                  "abcdefghijklmnopqrstuvwxyz()[].,:;/ ")) {
    for (const auto& other : seen) EXPECT_NE(drawn({c}), other) << c;
    seen.push_back(drawn({c}));
  }
  EXPECT_EQ(drawn("\xc3\xa4\n"), drawn("???"));
}

TEST(HeatmapTest, ColorsRunFromBlueOverWhiteToRed) {
  EXPECT_TRUE(HeatColor(0, 2) == kWhite);
  EXPECT_TRUE(HeatColor(2, 2) == kRed);
  EXPECT_TRUE(HeatColor(-2, 2) == kBlue);
  EXPECT_TRUE(HeatColor(-9, 2) == kBlue);
  EXPECT_TRUE(HeatColor(1, 2) == (Color{255, 128, 128}));
}

TEST(HeatmapTest, TheLimitLeavesOutliersAsideAndSaysHowMany) {
  std::vector<float> values(1000, -0.5f);
  values[17] = 100;
  EXPECT_EQ(BulkLimit(values), 0.5f);
  EXPECT_EQ(ClippedShare(values, 0.5f), "0.1 % clipped");
  EXPECT_EQ(ClippedShare(values, 100), "none clipped");
  EXPECT_EQ(BulkLimit(std::vector<float>(5, 0.0f)), 1.0f);
}

TEST(HeatmapTest, CenteredCosinesEqualTheirDefinition) {
  constexpr int kRows = 30, kColumns = 12, kZeros = 7;
  std::mt19937 random(1);
  std::normal_distribution<double> normal(3, 1);  // they share a lot
  std::vector<std::vector<double>> rows(kRows, std::vector<double>(kColumns));
  std::vector<double> mean(kColumns);
  const auto dot = [](const auto& a, const auto& b) {
    double sum = 0;
    for (int c = 0; c < kColumns; ++c) sum += a[c] * b[c];
    return sum;
  };
  for (int r = 0; r < kRows; ++r) {
    if (r == kZeros) continue;
    for (double& value : rows[r]) value = normal(random);
    const double length = std::sqrt(dot(rows[r], rows[r]));
    for (int c = 0; c < kColumns; ++c) {
      mean[c] += (rows[r][c] /= length) / (kRows - 1);
    }
  }
  std::vector<float> raw;
  for (const auto& a : rows) {
    for (const auto& b : rows) raw.push_back(static_cast<float>(dot(a, b)));
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns && r != kZeros; ++c) rows[r][c] -= mean[c];
  }
  const std::vector<float> centered = CenterCosines(raw, kRows);
  for (int a = 0; a < kRows; ++a) {
    for (int b = 0; b < kRows; ++b) {
      const double lengths =
          std::sqrt(dot(rows[a], rows[a]) * dot(rows[b], rows[b]));
      const double want = lengths > 0 ? dot(rows[a], rows[b]) / lengths : 0;
      ASSERT_NEAR(centered[a * kRows + b], want, 1e-4) << a << "," << b;
    }
  }
}

TEST(HeatmapTest, RowsThatAreAllAlikeHaveNothingLeft) {
  for (const float value : CenterCosines(std::vector<float>(25, 1.0f), 5)) {
    EXPECT_EQ(value, 0);
  }
}

// Where each map's upper left corner lies, by its first value's color.
TEST(HeatmapTest, EveryValueHasItsSquare) {
  const std::vector<float> values = {1, -1, 0, 0, 1, -1};
  const Heatmap map = {"table", "value", "column", values, 2, 3, 0, 0, 1};
  const Image image = DrawHeatmaps({}, {&map, 1});
  const auto [left, top] = Points(image, kRed).front();
  const Color want[] = {kRed, kBlue, kWhite, kWhite, kRed, kBlue};
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < 3; ++c) {
      const int x = left + c * 128, y = top + r * 192;  // 384 points each way
      EXPECT_TRUE(image.At(x, y) == want[r * 3 + c]) << r << "," << c;
      EXPECT_TRUE(image.At(x + 127, y + 191) == want[r * 3 + c])
          << r << "," << c;
    }
  }
}

TEST(HeatmapTest, MapsStandSideBySideUnderTheTitle) {
  const std::vector<float> values(1024 * 512, 1.0f);
  const Heatmap one = {"a", "b", "c", values, 1024, 512, 0, 0, 1};
  const Heatmap two[] = {one, one};
  const Image single = DrawHeatmaps({}, {&one, 1});
  const Image both = DrawHeatmaps({}, two);
  EXPECT_GE(both.width(), 2 * 512);
  EXPECT_EQ(both.height(), single.height());
  EXPECT_EQ(Points(both, kRed).size(), 2 * Points(single, kRed).size());
  const std::string lines[] = {"first", std::string(150, 'x')};
  const Image titled = DrawHeatmaps(lines, {&one, 1});
  EXPECT_GT(titled.height(), single.height());
  EXPECT_GE(titled.width(), Image::TextWidth(lines[1]));
  EXPECT_EQ(Points(titled, kRed).size(), Points(single, kRed).size());
}

TEST(HeatmapTest, MarkedRowsAreSeenOnTheAxesAsFarAsTheyAreShown) {
  const std::vector<float> values(512 * 512, 0.5f);
  Heatmap map = {"a", "b", "row", values, 512, 512, 0, 0, 1, 2, 2};
  const Image image = DrawHeatmaps({}, {&map, 1});
  EXPECT_EQ(Points(image, kMarkColor).size(), 2u * 8 * 4);
  map.first_row = map.first_column = 2;  // behind them
  EXPECT_TRUE(Points(DrawHeatmaps({}, {&map, 1}), kMarkColor).empty());
}

}  // namespace
}  // namespace encoderd::ctl
