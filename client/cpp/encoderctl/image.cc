#include "client/cpp/encoderctl/image.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace encoderd::ctl {
namespace {

// Rows from the top, five bits each, the leftmost highest.
using Glyph = std::array<uint8_t, 7>;
constexpr Glyph kDigits[] = {
    {14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14},
    {14, 17, 1, 2, 4, 8, 31},     {31, 2, 4, 2, 1, 17, 14},
    {2, 6, 10, 18, 31, 2, 2},     {31, 16, 30, 1, 1, 17, 14},
    {6, 8, 16, 30, 17, 17, 14},   {31, 1, 2, 4, 8, 8, 8},
    {14, 17, 17, 14, 17, 17, 14}, {14, 17, 17, 15, 1, 2, 12}};
constexpr Glyph kCapitals[] = {
    {14, 17, 17, 31, 17, 17, 17}, {30, 17, 17, 30, 17, 17, 30},
    {14, 17, 16, 16, 16, 17, 14}, {28, 18, 17, 17, 17, 18, 28},
    {31, 16, 16, 30, 16, 16, 31}, {31, 16, 16, 30, 16, 16, 16},
    {14, 17, 16, 23, 17, 17, 15}, {17, 17, 17, 31, 17, 17, 17},
    {14, 4, 4, 4, 4, 4, 14},      {7, 2, 2, 2, 2, 18, 12},
    {17, 18, 20, 24, 20, 18, 17}, {16, 16, 16, 16, 16, 16, 31},
    {17, 27, 21, 21, 17, 17, 17}, {17, 17, 25, 21, 19, 17, 17},
    {14, 17, 17, 17, 17, 17, 14}, {30, 17, 17, 30, 16, 16, 16},
    {14, 17, 17, 17, 21, 18, 13}, {30, 17, 17, 30, 20, 18, 17},
    {15, 16, 16, 14, 1, 1, 30},   {31, 4, 4, 4, 4, 4, 4},
    {17, 17, 17, 17, 17, 17, 14}, {17, 17, 17, 17, 17, 10, 4},
    {17, 17, 17, 21, 21, 21, 10}, {17, 17, 10, 4, 10, 17, 17},
    {17, 17, 17, 10, 4, 4, 4},    {31, 1, 2, 4, 8, 16, 31}};
constexpr Glyph kMinus = {0, 0, 0, 31, 0, 0, 0};
constexpr Glyph kPoint = {0, 0, 0, 0, 0, 12, 12};
constexpr Glyph kBlank = {};

const Glyph& GlyphOf(char c) {
  if (c >= '0' && c <= '9') return kDigits[c - '0'];
  if (c >= 'A' && c <= 'Z') return kCapitals[c - 'A'];
  if (c == '-') return kMinus;
  return c == '.' ? kPoint : kBlank;
}

}  // namespace

Color Image::At(int x, int y) const {
  const uint8_t* point = rgb_.data() + 3 * (size_t{1} * y * width_ + x);
  return {point[0], point[1], point[2]};
}

void Image::Set(int x, int y, Color color) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  uint8_t* point = rgb_.data() + 3 * (size_t{1} * y * width_ + x);
  point[0] = color.red;
  point[1] = color.green;
  point[2] = color.blue;
}

void Image::Fill(int x, int y, int width, int height, Color color) {
  for (int dy = 0; dy < height; ++dy) {
    for (int dx = 0; dx < width; ++dx) Set(x + dx, y + dy, color);
  }
}

void Image::Text(int x, int y, absl::string_view text) {
  for (const char c : text) {
    const Glyph& glyph = GlyphOf(c);
    for (int row = 0; row < kTextHeight; ++row) {
      for (int column = 0; column < 5; ++column) {
        if ((glyph[row] >> (4 - column) & 1) != 0) {
          Set(x + column, y + row, {});
        }
      }
    }
    x += 6;
  }
}

absl::Status Image::WritePng(const std::string& file) const {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width_);
  image.height = static_cast<png_uint_32>(height_);
  image.format = PNG_FORMAT_RGB;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, rgb_.data(), 0,
                                nullptr) == 0) {
    return absl::InternalError(
        absl::StrCat("cannot make a PNG: ", image.message));
  }
  bytes.resize(size);
  std::ofstream out(file, std::ios::binary);
  if (!out) {
    return absl::InvalidArgumentError(absl::StrCat("cannot open ", file));
  }
  out << bytes << std::flush;
  return out ? absl::OkStatus()
             : absl::DataLossError(absl::StrCat("cannot write ", file));
}

}  // namespace encoderd::ctl
