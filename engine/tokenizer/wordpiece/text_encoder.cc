#include "engine/tokenizer/wordpiece/text_encoder.h"

#include <algorithm>
#include <utility>

#include "engine/base/utf8.h"
#include "engine/tokenizer/unicode/unicode_rules.h"

namespace encoderd {
namespace {

inline char32_t DecodeAt(const char* p, int* length) {
  return utf8::Decode(reinterpret_cast<const uint8_t*>(p), length);
}

}  // namespace

TextEncoder::TextEncoder(BertNormalizerOptions options, WordPiece word_piece)
    : options_(options),
      word_piece_(std::move(word_piece)),
      table_(CharTable::Build(options_, word_piece_)) {
  for (int byte = 0; byte < 256; ++byte) {
    if (byte >= 0x80) {
      byte_kinds_[byte] = kNotAscii;
      continue;
    }
    const CharTable::Entry entry = table_[static_cast<char32_t>(byte)];
    if (entry.kind() == CharTable::kSpace) {
      byte_kinds_[byte] = kBlank;
    } else if (entry.kind() == CharTable::kToken) {
      byte_kinds_[byte] = kSign;
      sign_ids_[byte] = static_cast<int32_t>(entry.payload());
    } else {
      byte_kinds_[byte] = entry.kind() == CharTable::kCopy ? kPlain : kWord;
    }
  }
}

// The end of the stretch at `p`: the next boundary.
const char* TextEncoder::StretchEnd(const char* p) const {
  for (;;) {
    const uint8_t kind = byte_kinds_[static_cast<uint8_t>(*p)];
    if (kind <= kWord) {
      ++p;
    } else if (kind != kNotAscii) {
      return p;
    } else {
      int length;
      const char32_t c = DecodeAt(p, &length);
      if (CharTable::IsBoundary(table_[c].kind())) return p;
      p += length;
    }
  }
}

int32_t* TextEncoder::Encode(const char* begin, const char* end,
                             Scratch* scratch, int32_t* ids) const {
  const char* p = begin;
  while (p < end) {
    const auto byte = static_cast<uint8_t>(*p);
    const uint8_t kind = byte_kinds_[byte];
    if (kind == kBlank) {
      ++p;
      continue;
    }
    if (kind == kSign) {
      *ids++ = sign_ids_[byte];
      ++p;
      continue;
    }
    int length = 1;
    if (kind == kNotAscii) {
      const CharTable::Entry entry = table_[DecodeAt(p, &length)];
      if (CharTable::IsBoundary(entry.kind())) {
        if (entry.kind() == CharTable::kToken) {
          *ids++ = static_cast<int32_t>(entry.payload());
        }
        p += length;
        continue;
      }
    }
    const char* const stretch = p;
    p = StretchEnd(p + length);
    const int64_t bytes = p - stretch;
    if (bytes > WordCache::kMaxBytes) {
      ids = EncodeStretch(stretch, p, scratch, ids);
      continue;
    }
    const WordCache::Key key =
        WordCache::MakeKey(stretch, static_cast<uint32_t>(bytes));
    const WordCache::Entry* entry = scratch->cache.Find(key);
    if (entry == nullptr) {
      int32_t* const first = ids;
      ids = EncodeStretch(stretch, p, scratch, ids);
      scratch->cache.Insert(key, first, ids - first);
      continue;
    }
    WordCache::Copy(ids, entry->ids, entry->count);
    ids += entry->count;
  }
  return ids;
}

int32_t* TextEncoder::EncodeWord(const char* begin, const char* end,
                                 int64_t chars, int32_t* ids) const {
  if (chars == 0) return ids;
  int32_t* const matched = chars > word_piece_.options().max_word_chars
                               ? nullptr
                               : word_piece_.Match(begin, end, ids);
  if (matched != nullptr) return matched;
  *ids = word_piece_.unk_id();
  return ids + 1;
}

// One word: no boundary in it. Removed characters do not end a word.
int32_t* TextEncoder::EncodeStretch(const char* begin, const char* end,
                                    Scratch* scratch, int32_t* ids) const {
  const int64_t max_chars = word_piece_.options().max_word_chars;
  // A character more than allowed is enough to know; three syllables of jamo
  // are the longest that one step writes.
  const int64_t room =
      std::min<int64_t>(3 * (end - begin), 4 * (max_chars + 1)) + 16;
  if (static_cast<int64_t>(scratch->word.size()) < room) {
    scratch->word.resize(room);
  }
  char* const word = scratch->word.data();
  char* out = word;
  int64_t chars = 0;
  int length;
  for (const char* p = begin; p < end && chars <= max_chars; p += length) {
    if (byte_kinds_[static_cast<uint8_t>(*p)] == kPlain) {
      *out++ = *p;
      ++chars;
      length = 1;
      continue;
    }
    const char32_t c = DecodeAt(p, &length);
    const CharTable::Entry entry = table_[c];
    switch (entry.kind()) {
      case CharTable::kCopy:
        std::memcpy(out, p, 4);
        out += length;
        ++chars;
        break;
      case CharTable::kMap: {
        const CharTable::Replacement& replacement =
            table_.replacement(entry.payload());
        std::memcpy(out, replacement.text, sizeof(replacement.text));
        out += replacement.bytes;
        chars += replacement.chars;
        break;
      }
      case CharTable::kHangul: {
        const int jamo = DecomposeHangul(c, out);
        out += 3 * jamo;
        chars += jamo;
        break;
      }
      case CharTable::kMark:
        BertNormalize(absl::string_view(begin, end - begin), 0, options_,
                      &scratch->normal);
        return EncodeNormal(scratch->normal, ids, nullptr, scratch);
      default:  // removed
        break;
    }
  }
  return EncodeWord(word, out, chars, ids);
}

int32_t* TextEncoder::EncodeNormal(absl::Span<const NormalChar> chars,
                                   int32_t* ids,
                                   std::vector<ByteOffset>* offsets,
                                   Scratch* scratch) const {
  std::string& word = scratch->word;
  // Puts out the word chars[first, last).
  const auto flush = [&](size_t first, size_t last) {
    if (first == last) return;
    int32_t* const from = ids;
    word.clear();
    const auto count = static_cast<int64_t>(last - first);
    bool known = count <= word_piece_.options().max_word_chars;
    if (known) {
      for (size_t i = first; i < last; ++i) utf8::Append(chars[i].c, &word);
      int32_t* const matched =
          word_piece_.Match(word.data(), word.data() + word.size(), ids);
      known = matched != nullptr;
      if (known) ids = matched;
    }
    if (!known) *ids++ = word_piece_.unk_id();
    if (offsets == nullptr) return;
    if (!known) {
      offsets->push_back({chars[first].begin, chars[last - 1].end});
      return;
    }
    size_t at = first;
    for (const int32_t* id = from; id < ids; ++id) {
      int64_t left = word_piece_.TokenBytes(*id, id == from);
      const int32_t begin = chars[at].begin;
      char bytes[4];
      while (left > 0) left -= utf8::Encode(chars[at++].c, bytes);
      offsets->push_back({begin, chars[at - 1].end});
    }
  };
  size_t first = 0;
  for (size_t i = 0; i < chars.size(); ++i) {
    const bool space = unicode::IsSpace(chars[i].c);
    if (!space && !unicode::IsPunctuation(chars[i].c)) continue;
    flush(first, i);
    if (!space) flush(i, i + 1);
    first = i + 1;
  }
  flush(first, chars.size());
  return ids;
}

}  // namespace encoderd
