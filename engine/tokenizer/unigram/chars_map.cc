#include "engine/tokenizer/unigram/chars_map.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/text_change.h"
#include "engine/tokenizer/unicode/graphemes.h"

namespace encoderd {
namespace {

constexpr uint32_t kValueBit = 1u << 31;
// Longer clusters are looked up character by character.
constexpr size_t kClusterBytes = 6;

uint32_t Offset(uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}
bool HasValue(uint32_t unit) { return (unit >> 8 & 1) != 0; }
bool IsChild(uint32_t unit, uint8_t byte) {
  return (unit & (kValueBit | 0xFF)) == byte;
}

// `by` takes the place of `text`: characters one by one, then what is more or
// less.
void Replace(absl::string_view text, absl::string_view by, TextChange* change) {
  if (!change->places_matter()) {
    change->Copy(by);
    return;
  }
  int32_t old_chars = 0;
  utf8::ForEach(text, [&](char32_t, int32_t, int32_t) { ++old_chars; });
  int32_t chars = 0;
  utf8::ForEach(by, [&](char32_t c, int32_t, int32_t) {
    change->Put(c, chars++ < old_chars ? 0 : 1);
  });
  if (chars < old_chars) change->AddToLast(chars - old_chars);
}

}  // namespace

absl::StatusOr<CharsMap> CharsMap::Parse(absl::string_view bytes) {
  uint32_t trie_bytes = 0;
  if (bytes.size() > kMaxBytes || bytes.size() < sizeof(trie_bytes)) {
    return absl::DataLossError(absl::StrCat("the character map has ",
                                            bytes.size(),
                                            " bytes; it must "
                                            "have 4 to ",
                                            kMaxBytes));
  }
  std::memcpy(&trie_bytes, bytes.data(), sizeof(trie_bytes));
  bytes.remove_prefix(sizeof(trie_bytes));
  if (trie_bytes % 4 != 0 || trie_bytes == 0 || trie_bytes > bytes.size()) {
    return absl::DataLossError(
        absl::StrCat("the character map's trie has ", trie_bytes,
                     " bytes; it must have a multiple of 4 up to the ",
                     bytes.size(), " that follow"));
  }
  CharsMap map;
  map.units_.resize(trie_bytes / 4);
  std::memcpy(map.units_.data(), bytes.data(), trie_bytes);
  bytes.remove_prefix(trie_bytes);
  map.texts_ = std::string(bytes);
  if (const auto invalid = utf8::FindInvalid(bytes); invalid.has_value()) {
    return absl::DataLossError(absl::StrCat(
        "the character map's text is not UTF-8 at byte ", *invalid));
  }
  absl::Status status = map.CheckValues();
  if (!status.ok()) return status;
  for (int c = 0; c < 128; ++c) {
    const char byte = static_cast<char>(c);
    map.plain_[c] =
        c != '\r' && !map.Find(absl::string_view(&byte, 1)).has_value();
  }
  return map;
}

std::string CharsMap::bytes() const {
  return absl::StrCat(
      absl::string_view(reinterpret_cast<const char*>(units_.data()),
                        units_.size() * sizeof(units_[0])),
      texts_);
}

// Every value that a key can reach.
absl::Status CharsMap::CheckValues() const {
  const size_t size = units_.size();
  std::vector<bool> seen(size);
  std::vector<size_t> bases = {Offset(units_[0])};
  while (!bases.empty()) {
    const size_t base = bases.back();
    bases.pop_back();
    for (size_t byte = 1; byte < 256; ++byte) {
      const size_t place = base ^ byte;
      if (place >= size || seen[place] ||
          !IsChild(units_[place], static_cast<uint8_t>(byte))) {
        continue;
      }
      seen[place] = true;
      const size_t next = place ^ Offset(units_[place]);
      bases.push_back(next);
      if (!HasValue(units_[place])) continue;
      const size_t value =
          next < size ? units_[next] & ~kValueBit : texts_.size();
      if (value >= texts_.size() || (texts_[value] & 0xC0) == 0x80) {
        return absl::DataLossError(absl::StrCat(
            "the character map points to byte ", value, " of a text of ",
            texts_.size(), "; it must point to the start of a character"));
      }
    }
  }
  return absl::OkStatus();
}

std::optional<absl::string_view> CharsMap::Find(absl::string_view text) const {
  size_t base = Offset(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    const size_t place = base ^ byte;
    if (byte == 0 || place >= units_.size() || !IsChild(units_[place], byte)) {
      return std::nullopt;
    }
    base = place ^ Offset(units_[place]);
    if (HasValue(units_[place])) {
      const absl::string_view rest =
          absl::string_view(texts_).substr(units_[base] & ~kValueBit);
      return rest.substr(0, rest.find('\0'));
    }
  }
  return std::nullopt;
}

bool CharsMap::Apply(const NormalText& in, NormalText* out) const {
  const absl::string_view text = in.text();
  TextChange change(in, out);
  const auto is_ascii = [text](size_t at) {
    return static_cast<uint8_t>(text[at]) < 0x80;
  };
  for (size_t at = 0; at < text.size() && !out->exceeded();) {
    size_t end = at;
    while (end < text.size() && is_ascii(end) &&
           plain_[static_cast<uint8_t>(text[end])] &&
           (end + 1 == text.size() || is_ascii(end + 1))) {
      ++end;
    }
    if (end > at) {
      change.Keep(text.substr(at, end - at));
      at = end;
      continue;
    }
    end = unicode::ClusterEnd(text, at);
    const absl::string_view cluster = text.substr(at, end - at);
    if (cluster.size() < kClusterBytes) {
      if (const auto found = Find(cluster); found.has_value()) {
        Replace(cluster, *found, &change);
        at = end;
        continue;
      }
    }
    int length = 0;
    for (; at < end; at += length) {
      utf8::Decode(reinterpret_cast<const uint8_t*>(text.data()) + at, &length);
      const absl::string_view c = text.substr(at, length);
      if (const auto found = Find(c); found.has_value()) {
        Replace(c, *found, &change);
      } else {
        change.Keep(c);
      }
    }
  }
  change.Finish();
  return true;
}

}  // namespace encoderd
