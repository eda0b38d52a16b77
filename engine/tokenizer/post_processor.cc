#include "engine/tokenizer/post_processor.h"

#include <algorithm>
#include <cstdint>

#include "engine/base/utf8.h"
#include "engine/tokenizer/unicode/unicode_rules.h"

namespace encoderd {
namespace {

constexpr char32_t kByteLevelSpace = 0x120;

bool IsSpace(char32_t c) { return c == kByteLevelSpace || unicode::IsSpace(c); }

}  // namespace

void TrimOffset(const PostProcessor& post, absl::string_view value,
                absl::string_view text, bool first, ByteOffset* place) {
  const auto size = static_cast<int64_t>(value.size());
  int length = 0;
  int64_t leading = 0;
  for (int64_t at = 0; at < size && IsSpace(utf8::DecodeAt(value, at, &length));
       at += length) {
    ++leading;
  }
  int64_t trailing = 0;
  for (int64_t at = size; at > 0; ++trailing) {
    at = utf8::Previous(value, at);
    if (!IsSpace(utf8::DecodeAt(value, at, &length))) break;
  }
  if (leading == 1 && post.add_prefix_space && (first || place->begin == 0)) {
    leading = 0;
  }
  for (; leading > 0 && place->begin < place->end; --leading) {
    utf8::DecodeAt(text, place->begin, &length);
    place->begin += length;
  }
  if (trailing == 0) return;
  int64_t end = place->end;
  for (; trailing > 0 && end > 0; --trailing) end = utf8::Previous(text, end);
  // The reference leaves a place alone that has less text before its end.
  if (trailing > 0) return;
  place->end = static_cast<int32_t>(std::max<int64_t>(end, place->begin));
}

}  // namespace encoderd
