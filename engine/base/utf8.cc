#include "engine/base/utf8.h"

#include <bit>
#include <cstring>

namespace encoderd::utf8 {
namespace {

constexpr uint64_t kHighBits = 0x8080808080808080u;

bool IsContinuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Bytes of the well-formed sequence at `p`; 0 when there is none before `end`.
int SequenceLength(const uint8_t* p, const uint8_t* end) {
  const uint8_t lead = p[0];
  const int64_t left = end - p;
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return left >= 2 && IsContinuation(p[1]) ? 2 : 0;
  if (lead < 0xF0) {
    if (left < 3 || !IsContinuation(p[1]) || !IsContinuation(p[2])) return 0;
    if (lead == 0xE0 && p[1] < 0xA0) return 0;   // overlong
    if (lead == 0xED && p[1] >= 0xA0) return 0;  // surrogate
    return 3;
  }
  if (lead > 0xF4 || left < 4) return 0;
  if (!IsContinuation(p[1]) || !IsContinuation(p[2]) || !IsContinuation(p[3])) {
    return 0;
  }
  if (lead == 0xF0 && p[1] < 0x90) return 0;   // overlong
  if (lead == 0xF4 && p[1] >= 0x90) return 0;  // over U+10FFFF
  return 4;
}

}  // namespace

std::optional<int64_t> FindInvalid(absl::string_view text) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = begin + text.size();
  const uint8_t* p = begin;
  while (p < end) {
    // To the next byte that is not ASCII; the first bytes in memory are the low
    // ones on every machine supported.
    while (end - p >= 16) {
      uint64_t words[2];
      std::memcpy(words, p, sizeof(words));
      const uint64_t first = words[0] & kHighBits;
      const uint64_t second = words[1] & kHighBits;
      if ((first | second) != 0) {
        p += (first != 0 ? std::countr_zero(first)
                         : 64 + std::countr_zero(second)) /
             8;
        break;
      }
      p += 16;
    }
    do {
      const int length = SequenceLength(p, end);
      if (length == 0) return p - begin;
      p += length;
    } while (p < end && *p >= 0x80);
  }
  return std::nullopt;
}

}  // namespace encoderd::utf8
