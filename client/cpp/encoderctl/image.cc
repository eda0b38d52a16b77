#include "client/cpp/encoderctl/image.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

#include <algorithm>
#include <cerrno>

#include "client/cpp/encoderctl/output_file.h"

namespace encoderd::ctl {
namespace {

constexpr int kScale = 2;  // points of the picture for one of stb's
constexpr int kMostBytesALetter = 1500;  // of its rectangles

// What stb has letters for: it reads past its table at other bytes.
std::string AsciiOnly(absl::string_view text) {
  std::string ascii(text);
  for (char& c : ascii) {
    if (c < ' ' || c > '~') c = '?';
  }
  return ascii;
}

}  // namespace

Color Image::At(int x, int y) const {
  const uint8_t* point = rgb_.data() + 3 * (size_t{1} * y * width_ + x);
  return {point[0], point[1], point[2]};
}

void Image::Fill(int x, int y, int width, int height, Color color) {
  for (int row = std::max(y, 0); row < std::min(y + height, height_); ++row) {
    for (int at = std::max(x, 0); at < std::min(x + width, width_); ++at) {
      uint8_t* point = rgb_.data() + 3 * (size_t{1} * row * width_ + at);
      point[0] = color.red;
      point[1] = color.green;
      point[2] = color.blue;
    }
  }
}

void Image::Text(int x, int y, absl::string_view text) {
  std::string letters = AsciiOnly(text);
  // Rectangles of four corners, each x, y, z and a color.
  std::vector<float> corners(letters.size() * kMostBytesALetter /
                             sizeof(float));
  const int rectangles =
      stb_easy_font_print(0, 0, letters.data(), nullptr, corners.data(),
                          static_cast<int>(corners.size() * sizeof(float)));
  for (int i = 0; i < rectangles; ++i) {
    const float* first = corners.data() + size_t{16} * i;
    const float* across = first + 8;
    const auto points = [](float size) {
      return kScale * static_cast<int>(size);
    };
    Fill(x + points(first[0]), y + points(first[1]),
         points(across[0]) - points(first[0]),
         points(across[1]) - points(first[1]), {});
  }
}

int Image::TextWidth(absl::string_view text) {
  return kScale * stb_easy_font_width(AsciiOnly(text).data());
}

absl::Status Image::WritePng(const std::string& file) const {
  std::string png;
  const auto append = [](void* context, void* bytes, int size) {
    static_cast<std::string*>(context)->append(static_cast<char*>(bytes), size);
  };
  // stb fails only where there is no memory.
  return stbi_write_png_to_func(append, &png, width_, height_, 3, rgb_.data(),
                                3 * width_) != 0
             ? ReplaceFile(file, png)
             : CannotWrite(file, ENOMEM);
}

}  // namespace encoderd::ctl
