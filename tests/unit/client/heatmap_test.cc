#include "client/cpp/encoderctl/heatmap.h"

#include <gtest/gtest.h>
#include <png.h>

#include <string>
#include <vector>

#include "client/cpp/encoderctl/image.h"
#include "tests/support/temp_folder.h"

namespace encoderd::ctl {
namespace {

constexpr Color kWhite = {255, 255, 255};
constexpr Color kBlack = {0, 0, 0};

// The points of a PNG, by libpng's reader.
std::vector<uint8_t> ReadPng(const std::string& file, int* width, int* height) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, file.c_str()) == 0) return {};
  image.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> rgb(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, rgb.data(), 0, nullptr) == 0) {
    return {};
  }
  *width = static_cast<int>(image.width);
  *height = static_cast<int>(image.height);
  return rgb;
}

TEST(ImageTest, APngReadsBackPointByPoint) {
  Image image(37, 23);
  image.Fill(3, 4, 5, 6, {10, 20, 30});
  image.Text(12, 8, "A1");
  image.Set(36, 22, {1, 2, 3});
  image.Set(37, 22, kBlack);  // outside
  const TempFolder folder;
  const std::string file = folder.Path("image.png");
  ASSERT_TRUE(image.WritePng(file).ok());
  int width = 0, height = 0;
  const std::vector<uint8_t> rgb = ReadPng(file, &width, &height);
  ASSERT_EQ(width, 37);
  ASSERT_EQ(height, 23);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const uint8_t* point = rgb.data() + 3 * (y * width + x);
      ASSERT_TRUE(image.At(x, y) == (Color{point[0], point[1], point[2]}))
          << x << "," << y;
    }
  }
}

TEST(ImageTest, LettersAreDrawnAndDiffer) {
  const auto drawn = [](const std::string& text) {
    Image image(8, 8);
    image.Text(0, 0, text);
    std::vector<bool> points;
    for (int y = 0; y < 8; ++y) {
      for (int x = 0; x < 8; ++x) points.push_back(image.At(x, y) == kBlack);
    }
    return points;
  };
  std::vector<std::vector<bool>> seen;
  for (const char c : std::string("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-. ")) {
    for (const auto& other : seen) EXPECT_NE(drawn({c}), other) << c;
    seen.push_back(drawn({c}));
  }
}

TEST(HeatmapTest, ColoursRunFromBlueOverWhiteToRed) {
  EXPECT_TRUE(HeatColor(0, 2) == kWhite);
  EXPECT_TRUE(HeatColor(2, 2) == (Color{255, 0, 0}));
  EXPECT_TRUE(HeatColor(-2, 2) == (Color{0, 0, 255}));
  EXPECT_TRUE(HeatColor(-9, 2) == (Color{0, 0, 255}));
  EXPECT_TRUE(HeatColor(1, 2) == (Color{255, 128, 128}));
}

TEST(HeatmapTest, TheLimitLeavesOutliersAside) {
  std::vector<float> values(1000, -0.5f);
  values[17] = 100;
  EXPECT_EQ(BulkLimit(values), 0.5f);
  EXPECT_EQ(BulkLimit(std::vector<float>(5, 0.0f)), 1.0f);
}

TEST(HeatmapTest, EveryValueHasItsSquare) {
  const std::vector<float> values = {1, -1, 0, 0, 1, -1};
  const Heatmap map = {"TABLE", "COLUMN", values, 2, 3, 0, 0, 1};
  const Image image = DrawHeatmaps({&map, 1});
  // Squares of 192 x 128 points from (48, 24) on.
  const Color red = {255, 0, 0}, blue = {0, 0, 255};
  const Color want[] = {red, blue, kWhite, kWhite, red, blue};
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < 3; ++c) {
      const int x = 48 + c * 128, y = 24 + r * 192;
      EXPECT_TRUE(image.At(x, y) == want[r * 3 + c]) << r << "," << c;
      EXPECT_TRUE(image.At(x + 127, y + 191) == want[r * 3 + c])
          << r << "," << c;
    }
  }
}

TEST(HeatmapTest, MapsStandSideBySide) {
  const std::vector<float> values(1024 * 64, 0.5f);
  const Heatmap one = {"A", "B", values, 1024, 64, 0, 0, 1};
  const Heatmap two[] = {one, one};
  const Image single = DrawHeatmaps({&one, 1});
  const Image both = DrawHeatmaps(two);
  EXPECT_EQ(both.width(), 2 * single.width());
  EXPECT_EQ(both.height(), single.height());
  EXPECT_GE(both.height(), 1024);
}

}  // namespace
}  // namespace encoderd::ctl
