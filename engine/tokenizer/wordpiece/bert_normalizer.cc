#include "engine/tokenizer/wordpiece/bert_normalizer.h"

#include <algorithm>
#include <string>

#include "engine/base/utf8.h"
#include "engine/tokenizer/unicode/unicode_rules.h"

namespace encoderd {
namespace {

std::vector<NormalChar> Decode(absl::string_view text, int32_t origin,
                               bool clean) {
  std::vector<NormalChar> chars;
  chars.reserve(text.size());
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  const auto* const end = p + text.size();
  int32_t begin = origin;
  for (int length = 0; p < end; p += length, begin += length) {
    const char32_t c = utf8::Decode(p, &length);
    if (!clean) {
      chars.push_back({c, begin, begin + length});
    } else if (!unicode::IsRemoved(c)) {
      chars.push_back({unicode::IsSpace(c) ? U' ' : c, begin, begin + length});
    }
  }
  return chars;
}

std::vector<NormalChar> SpaceIdeographs(const std::vector<NormalChar>& chars) {
  std::vector<NormalChar> out;
  out.reserve(chars.size());
  for (const NormalChar& x : chars) {
    const bool cjk = unicode::IsCjk(x.c);
    if (cjk) out.push_back({U' ', x.begin, x.end});
    out.push_back(x);
    if (cjk) out.push_back({U' ', x.begin, x.end});
  }
  return out;
}

// Canonical decomposition with ordering, then without nonspacing marks.
std::vector<NormalChar> StripAccents(const std::vector<NormalChar>& chars) {
  struct Part {
    char32_t c;
    uint8_t combining_class;
    bool first;  // of its source character
  };
  std::vector<Part> parts;
  parts.reserve(chars.size());
  std::u32string decomposed;
  for (const NormalChar& x : chars) {
    if (unicode::IsInert(x.c, false)) {
      parts.push_back({x.c, 0, true});
      continue;
    }
    decomposed.clear();
    unicode::AppendDecomposed(x.c, &decomposed);
    bool first = true;
    for (const char32_t c : decomposed) {
      parts.push_back({c, unicode::CombiningClass(c), first});
      first = false;
    }
  }
  const auto is_starter = [](const Part& x) { return x.combining_class == 0; };
  for (auto at = parts.begin(); at != parts.end();) {
    at = std::find_if_not(at, parts.end(), is_starter);
    const auto run_end = std::find_if(at, parts.end(), is_starter);
    std::stable_sort(at, run_end, [](const Part& a, const Part& b) {
      return a.combining_class < b.combining_class;
    });
    at = run_end;
  }
  // Sources are handed out in order: a part that begins a source takes the next
  // one, even where ordering moved it. The reference does the same.
  std::vector<NormalChar> out;
  out.reserve(parts.size());
  size_t taken = 0;
  for (const Part& part : parts) {
    if (part.first) ++taken;
    if (unicode::IsNonspacingMark(part.c)) continue;
    const NormalChar source = taken > 0 ? chars[taken - 1] : NormalChar{};
    out.push_back({part.c, source.begin, source.end});
  }
  return out;
}

std::vector<NormalChar> Lower(const std::vector<NormalChar>& chars) {
  std::vector<NormalChar> out;
  out.reserve(chars.size());
  std::u32string lower;
  for (const NormalChar& x : chars) {
    lower.clear();
    unicode::AppendLower(x.c, &lower);
    for (const char32_t c : lower) out.push_back({c, x.begin, x.end});
  }
  return out;
}

}  // namespace

void BertNormalize(absl::string_view text, int32_t origin,
                   const BertNormalizerOptions& options,
                   std::vector<NormalChar>* out) {
  *out = Decode(text, origin, options.clean_text);
  if (options.handle_chinese_chars) *out = SpaceIdeographs(*out);
  if (options.strip_accents) *out = StripAccents(*out);
  if (options.lowercase) *out = Lower(*out);
}

}  // namespace encoderd
