#include "engine/tokenizer/bpe/byte_level.h"

#include <array>
#include <cstdint>

#include "engine/base/utf8.h"
#include "engine/tokenizer/unicode/code_point_table.h"
#include "engine/tokenizer/unicode/unicode_rules.h"

namespace encoderd::byte_level {
namespace {

// Bytes that are printable by themselves stand for themselves; the others, in
// order, are U+0100, U+0101, ...
bool IsPrintable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

constexpr char32_t kFirstOther = 0x100;
constexpr char32_t kAlphabetEnd = 0x144;  // 68 others

struct Alphabet {
  std::array<char32_t, 256> of_byte{};
  std::array<int16_t, kAlphabetEnd> byte_of{};
};

const Alphabet& TheAlphabet() {
  static const Alphabet* const alphabet = [] {
    auto* made = new Alphabet;
    made->byte_of.fill(-1);
    char32_t other = kFirstOther;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t c =
          IsPrintable(byte) ? static_cast<char32_t>(byte) : other++;
      made->of_byte[byte] = c;
      made->byte_of[c] = static_cast<int16_t>(byte);
    }
    return made;
  }();
  return *alphabet;
}

enum Class : uint8_t { kLetter, kNumber, kSpace, kOther };

uint8_t ClassOf(char32_t c) {
  if (unicode::IsLetter(c)) return kLetter;
  if (unicode::IsNumber(c)) return kNumber;
  return unicode::IsSpace(c) ? kSpace : kOther;
}

const CodePointTable& Classes() {
  static const CodePointTable* const table = new CodePointTable(&ClassOf);
  return *table;
}

// Bytes of 's, 't, 're, 've, 'm, 'll or 'd at `p`, which is '; 0 without.
int ContractionBytes(const char* p, const char* end) {
  if (end - p < 2) return 0;
  switch (p[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return end - p > 2 && p[2] == 'e' ? 3 : 0;
    case 'l':
      return end - p > 2 && p[2] == 'l' ? 3 : 0;
    default:
      return 0;
  }
}

class Scanner {
 public:
  Scanner(const char* begin, const char* end)
      : classes_(Classes()), p_(begin), end_(end) {}

  bool done() const { return p_ == end_; }
  const char* place() const { return p_; }

  // Goes to the end of the match that begins here.
  void Next() {
    if (*p_ == '\'') {
      const int bytes = ContractionBytes(p_, end_);
      if (bytes > 0) {
        p_ += bytes;
        return;
      }
    }
    uint8_t kind = Look();
    if (*p_ == ' ') {
      ++p_;
      if (p_ == end_) return;
      kind = Look();
      if (kind == kSpace) --p_;
    }
    if (kind != kSpace) {
      while (p_ < end_ && Look() == kind) p_ += length_;
      return;
    }
    // White space: all of it at the end of the text, else all but the last,
    // which goes with what follows.
    const char* last = p_;
    const char* const first = p_;
    while (p_ < end_ && Look() == kSpace) {
      last = p_;
      p_ += length_;
    }
    if (p_ < end_ && last > first) p_ = last;
  }

 private:
  // The class of the character at p_, whose bytes are then length_.
  uint8_t Look() {
    const char32_t c =
        utf8::Decode(reinterpret_cast<const uint8_t*>(p_), &length_);
    return classes_[c];
  }

  const CodePointTable& classes_;
  const char* p_;
  const char* const end_;
  int length_ = 0;
};

}  // namespace

std::optional<std::string> ToBytes(absl::string_view entry) {
  const Alphabet& alphabet = TheAlphabet();
  std::string bytes;
  int length = 0;
  for (size_t at = 0; at < entry.size(); at += length) {
    const char32_t c = utf8::Decode(
        reinterpret_cast<const uint8_t*>(entry.data()) + at, &length);
    if (c >= kAlphabetEnd || alphabet.byte_of[c] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(alphabet.byte_of[c]));
  }
  return bytes;
}

std::string FromBytes(absl::string_view bytes) {
  const Alphabet& alphabet = TheAlphabet();
  std::string entry;
  for (const char byte : bytes) {
    utf8::Append(alphabet.of_byte[static_cast<uint8_t>(byte)], &entry);
  }
  return entry;
}

void SplitWords(absl::string_view text, TextRange part,
                std::vector<TextRange>* out) {
  Scanner scanner(text.data() + part.begin, text.data() + part.end);
  while (!scanner.done()) {
    const auto begin = static_cast<int32_t>(scanner.place() - text.data());
    scanner.Next();
    out->push_back(
        {begin, static_cast<int32_t>(scanner.place() - text.data())});
  }
}

}  // namespace encoderd::byte_level
