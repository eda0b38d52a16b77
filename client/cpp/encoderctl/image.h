// A picture in memory and on disk: stb writes its letters and its PNG. Internal
// to encoderctl; not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_IMAGE_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace encoderd::ctl {

struct Color {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
  bool operator==(const Color&) const = default;
};

// 8-bit RGB, white at first; x to the right, y down.
class Image {
 public:
  Image(int width, int height)
      : width_(width), height_(height), rgb_(size_t{3} * width * height, 255) {}

  int width() const { return width_; }
  int height() const { return height_; }
  Color At(int x, int y) const;
  // Points outside are left out, here and below.
  void Fill(int x, int y, int width, int height, Color color);
  // Black letters of ASCII, each other byte a '?'. (x, y): upper left corner.
  void Text(int x, int y, absl::string_view text);
  static int TextWidth(absl::string_view text);
  static constexpr int kTextHeight = 18;  // from ascender to descender

  // A PNG. The file's own errors: see ReplaceFile.
  absl::Status WritePng(const std::string& file) const;

 private:
  const int width_;
  const int height_;
  std::vector<uint8_t> rgb_;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_IMAGE_H_
