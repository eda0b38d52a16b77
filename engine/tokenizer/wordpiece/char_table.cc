#include "engine/tokenizer/wordpiece/char_table.h"

#include <unicode/uchar.h>

#include <iterator>
#include <map>
#include <string>

#include "engine/base/utf8.h"
#include "engine/tokenizer/unicode/unicode_rules.h"

namespace encoderd {
namespace {

constexpr char32_t kHangulFirst = 0xAC00;
constexpr char32_t kHangulLast = 0xD7A3;

constexpr char32_t kVowels = 21;
constexpr char32_t kTrails = 28;

bool IsHangul(char32_t c) { return c >= kHangulFirst && c <= kHangulLast; }

// What becomes of one character, and whether marks in it may be reordered with
// those of its neighbors.
struct Outcome {
  std::u32string chars;
  bool reorders = false;
};

Outcome NormalizeOne(char32_t c, const BertNormalizerOptions& options) {
  std::u32string parts;
  if (options.clean_text && unicode::IsRemoved(c)) return {};
  if (options.clean_text && unicode::IsSpace(c)) c = U' ';
  if (options.strip_accents) {
    unicode::AppendDecomposed(c, &parts);
  } else {
    parts.push_back(c);
  }
  Outcome outcome;
  for (const char32_t part : parts) {
    if (options.strip_accents) {
      if (unicode::IsNonspacingMark(part)) continue;
      if (unicode::CombiningClass(part) != 0) outcome.reorders = true;
    }
    if (options.lowercase) {
      unicode::AppendLower(part, &outcome.chars);
    } else {
      outcome.chars.push_back(part);
    }
  }
  return outcome;
}

// The id of a word of one character.
uint32_t IdOf(char32_t c, const WordPiece& word_piece) {
  char word[4];
  int32_t ids[4];
  const int bytes = utf8::Encode(c, word);
  const bool known = word_piece.options().max_word_chars >= 1 &&
                     word_piece.Match(word, word + bytes, ids) != nullptr;
  return static_cast<uint32_t>(known ? ids[0] : word_piece.unk_id());
}

}  // namespace

int DecomposeHangul(char32_t syllable, char* out) {
  const char32_t index = syllable - kHangulFirst;
  const char32_t trail = index % kTrails;
  utf8::Encode(0x1100 + index / (kVowels * kTrails), out);
  utf8::Encode(0x1161 + index / kTrails % kVowels, out + 3);
  if (trail == 0) return 2;
  utf8::Encode(0x11A7 + trail, out + 6);
  return 3;
}

CharTable::Entry CharTable::MakeEntry(char32_t c,
                                      const BertNormalizerOptions& options,
                                      const WordPiece& word_piece) {
  const auto make = [](Kind kind, uint32_t payload = 0) {
    return Entry{payload << 3 | kind};
  };
  if (IsHangul(c)) return make(options.strip_accents ? kHangul : kCopy);
  // Most code points are of a few plain kinds; this keeps Build short.
  const bool isolated = options.handle_chinese_chars && unicode::IsCjk(c);
  const auto code = static_cast<UChar32>(c);
  const int8_t category = u_charType(code);
  if (category == U_PRIVATE_USE_CHAR) {
    return make(options.clean_text ? kDrop : kCopy);
  }
  const bool plain = (category == U_OTHER_LETTER &&
                      u_getIntPropertyValue(code, UCHAR_NFD_INERT)) ||
                     (category == U_UNASSIGNED && c >= unicode::kNoNewCapitals);
  if (plain && !isolated) return make(kCopy);
  if (plain) return make(kToken, IdOf(c, word_piece));
  const Outcome outcome = NormalizeOne(c, options);
  if (outcome.reorders) return make(kMark);
  if (outcome.chars.empty()) return make(kDrop);
  if (outcome.chars.size() == 1) {
    const char32_t only = outcome.chars[0];
    if (unicode::IsSpace(only)) return make(kSpace);
    if (isolated || unicode::IsPunctuation(only)) {
      return make(kToken, IdOf(only, word_piece));
    }
    if (only == c) return make(kCopy);
  }
  Replacement replacement;
  for (const char32_t part : outcome.chars) {
    if (unicode::IsSpace(part) || unicode::IsPunctuation(part)) {
      return make(kMark);
    }
    if (replacement.bytes + 4 > static_cast<int>(sizeof(replacement.text))) {
      return make(kMark);
    }
    replacement.bytes +=
        utf8::Encode(part, replacement.text + replacement.bytes);
    ++replacement.chars;
  }
  pool_.push_back(replacement);
  return make(kMap, static_cast<uint32_t>(pool_.size() - 1));
}

CharTable CharTable::Build(const BertNormalizerOptions& options,
                           const WordPiece& word_piece) {
  CharTable table;
  constexpr char32_t kBlockSize = 1 << kShift;
  std::map<std::string, uint32_t> known;  // bytes of a block -> its place
  Entry block[kBlockSize];
  for (char32_t first = 0; first < unicode::kCodePoints; first += kBlockSize) {
    if (first > unicode::kEmptyFirst && first < unicode::kEmptyEnd) {
      table.blocks_.push_back(table.blocks_.back());
      continue;
    }
    for (char32_t i = 0; i < kBlockSize; ++i) {
      block[i] = table.MakeEntry(first + i, options, word_piece);
    }
    const std::string bytes(reinterpret_cast<const char*>(block),
                            sizeof(block));
    const auto [found, is_new] =
        known.try_emplace(bytes, static_cast<uint32_t>(table.entries_.size()));
    if (is_new) {
      table.entries_.insert(table.entries_.end(), std::begin(block),
                            std::end(block));
    }
    table.blocks_.push_back(found->second);
  }
  return table;
}

}  // namespace encoderd
