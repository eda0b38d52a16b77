#include "server/trace/trace_context.h"

#include <cstddef>

namespace encoderd {
namespace {

// version "-" trace id "-" parent id "-" flags
constexpr size_t kLength = 55;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;  // capitals are not allowed
}

// Reads two digits for each byte. False where one is not a digit.
template <size_t kBytes>
bool ReadHex(absl::string_view text, std::array<uint8_t, kBytes>* bytes) {
  for (size_t i = 0; i < kBytes; ++i) {
    const int high = HexDigit(text[2 * i]);
    const int low = HexDigit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    (*bytes)[i] = static_cast<uint8_t>(16 * high + low);
  }
  return true;
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(absl::string_view value) {
  if (value.size() < kLength || value[2] != '-' || value[35] != '-' ||
      value[52] != '-') {
    return std::nullopt;
  }
  std::array<uint8_t, 1> version = {};
  std::array<uint8_t, 1> flags = {};
  TraceContext context;
  if (!ReadHex(value, &version) ||
      !ReadHex(value.substr(3), &context.trace_id) ||
      !ReadHex(value.substr(36), &context.parent) ||
      !ReadHex(value.substr(53), &flags)) {
    return std::nullopt;
  }
  const bool longer = value.size() > kLength;
  if (version[0] == 0xff || (longer && version[0] == 0) ||
      (longer && value[kLength] != '-')) {
    return std::nullopt;
  }
  if (context.trace_id == TraceId() || context.parent == SpanId()) {
    return std::nullopt;
  }
  context.sampled = (flags[0] & 1) != 0;
  return context;
}

}  // namespace encoderd
