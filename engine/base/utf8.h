// UTF-8: whether a text is well-formed, where to cut it, code points and back.
// Pure functions.
#ifndef ENCODERD_ENGINE_BASE_UTF8_H_
#define ENCODERD_ENGINE_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace encoderd::utf8 {

// Offset of the first byte that is not part of well-formed UTF-8 (no overlong
// forms, no surrogates, at most U+10FFFF); nullopt when all of `text` is.
std::optional<int64_t> FindInvalid(absl::string_view text);

// Decodes the code point at `p`, which starts one of well-formed UTF-8; *length
// is its bytes, 1 to 4.
inline char32_t Decode(const uint8_t* p, int* length) {
  if (p[0] < 0x80) {
    *length = 1;
    return p[0];
  }
  if (p[0] < 0xE0) {
    *length = 2;
    return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
  }
  if (p[0] < 0xF0) {
    *length = 3;
    return (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
  }
  *length = 4;
  return (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 |
         (p[3] & 0x3Fu);
}

// The same of the code point at byte `at` of `text`.
inline char32_t DecodeAt(absl::string_view text, int64_t at, int* length) {
  return Decode(reinterpret_cast<const uint8_t*>(text.data()) + at, length);
}

// Calls visit(c, begin, end) for each code point of `text`, or of its bytes
// [begin, end), which are well-formed, with the range of its bytes in `text`.
template <typename Visit>
void ForEach(absl::string_view text, int32_t begin, int32_t end,
             const Visit& visit) {
  int length = 0;
  for (int32_t at = begin; at < end; at += length) {
    const char32_t c = DecodeAt(text, at, &length);
    visit(c, at, at + length);
  }
}
template <typename Visit>
void ForEach(absl::string_view text, const Visit& visit) {
  ForEach(text, 0, static_cast<int32_t>(text.size()), visit);
}

// Writes 1 to 4 bytes and returns how many.
inline int Encode(char32_t c, char* out) {
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  if (c < 0x800) {
    out[0] = static_cast<char>(0xC0 | c >> 6);
    out[1] = static_cast<char>(0x80 | (c & 0x3F));
    return 2;
  }
  if (c < 0x10000) {
    out[0] = static_cast<char>(0xE0 | c >> 12);
    out[1] = static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out[2] = static_cast<char>(0x80 | (c & 0x3F));
    return 3;
  }
  out[0] = static_cast<char>(0xF0 | c >> 18);
  out[1] = static_cast<char>(0x80 | (c >> 12 & 0x3F));
  out[2] = static_cast<char>(0x80 | (c >> 6 & 0x3F));
  out[3] = static_cast<char>(0x80 | (c & 0x3F));
  return 4;
}

inline void Append(char32_t c, std::string* out) {
  char bytes[4];
  out->append(bytes, Encode(c, bytes));
}

// Start of the code point that ends right before `end`, which is > 0.
inline int64_t Previous(absl::string_view text, int64_t end) {
  do {
    --end;
  } while (end > 0 && (text[end] & 0xC0) == 0x80);
  return end;
}

// The first bytes of `text`, at most `limit`, without a part of a code point at
// their end.
inline absl::string_view CutAtCharacter(absl::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  return text.substr(0, Previous(text, static_cast<int64_t>(limit) + 1));
}

}  // namespace encoderd::utf8

#endif  // ENCODERD_ENGINE_BASE_UTF8_H_
