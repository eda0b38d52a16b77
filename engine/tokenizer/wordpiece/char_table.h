// What normalizer and pre-tokenizer together do with each code point, worked
// out once, so that encoding a character is one look into a table.
//
// A two-stage table: code point -> block of 128 -> entry; equal blocks are
// stored once. An entry is a kind and a payload. Spaces, punctuation and
// (with handle_chinese_chars) ideographs are boundaries: no word and no
// reordering of marks goes across them, so that what lies between two
// boundaries can be encoded, and cached, by itself. Constant after Build;
// thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_WORDPIECE_CHAR_TABLE_H_
#define ENCODERD_ENGINE_TOKENIZER_WORDPIECE_CHAR_TABLE_H_

#include <cstdint>
#include <vector>

#include "engine/tokenizer/wordpiece/bert_normalizer.h"
#include "engine/tokenizer/wordpiece/word_piece.h"

namespace encoderd {

class CharTable {
 public:
  enum Kind : uint32_t {
    kCopy = 0,    // part of a word, as it is
    kDrop = 1,    // removed
    kMap = 2,     // part of a word, replaced; payload: place in the pool
    kHangul = 3,  // part of a word, a syllable to be decomposed
    kMark = 4,    // may be reordered: needs BertNormalize()
    kSpace = 5,   // boundary
    kToken = 6,   // boundary, a separate word; payload: its token id
  };
  static constexpr bool IsBoundary(Kind kind) { return kind >= kSpace; }

  struct Entry {
    uint32_t bits = 0;
    Kind kind() const { return static_cast<Kind>(bits & 7); }
    uint32_t payload() const { return bits >> 3; }
  };

  // Token ids are those of `word_piece`, each word of one character.
  static CharTable Build(const BertNormalizerOptions& options,
                         const WordPiece& word_piece);

  Entry operator[](char32_t c) const {
    return entries_[blocks_[c >> kShift] | (c & kMask)];
  }

  // The replacement at `place`: UTF-8 of at most 12 bytes and its code points.
  struct Replacement {
    uint8_t bytes = 0;
    uint8_t chars = 0;
    char text[12] = {};
  };
  const Replacement& replacement(uint32_t place) const { return pool_[place]; }

 private:
  static constexpr int kShift = 7;
  static constexpr char32_t kMask = (1 << kShift) - 1;

  Entry MakeEntry(char32_t c, const BertNormalizerOptions& options,
                  const WordPiece& word_piece);

  std::vector<uint32_t> blocks_;  // [code points / 128], index into entries_
  std::vector<Entry> entries_;
  std::vector<Replacement> pool_;
};

// Writes the decomposition of a Hangul syllable, two or three jamo of three
// bytes each; returns how many.
int DecomposeHangul(char32_t syllable, char* out);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_WORDPIECE_CHAR_TABLE_H_
