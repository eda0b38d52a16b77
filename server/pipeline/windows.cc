#include "server/pipeline/windows.h"

#include <algorithm>

namespace encoderd {
namespace {

int64_t Room(const WindowRule& rule) {
  return rule.max_len - rule.special_tokens;
}

}  // namespace

int64_t CountWindows(const WindowRule& rule, int64_t text_tokens) {
  if (text_tokens <= Room(rule)) return 1;
  // Each window but the first adds this many new tokens.
  const int64_t stride = Room(rule) - rule.overlap;
  return (text_tokens - rule.overlap + stride - 1) / stride;
}

int64_t WindowTokens(const WindowRule& rule, int64_t text_tokens) {
  const int64_t count = CountWindows(rule, text_tokens);
  return text_tokens + (count - 1) * rule.overlap + count * rule.special_tokens;
}

TextRange WindowAt(const WindowRule& rule, int64_t text_tokens, int64_t index) {
  const int64_t begin = index * (Room(rule) - rule.overlap);
  return {begin, std::min(begin + Room(rule), text_tokens)};
}

}  // namespace encoderd
