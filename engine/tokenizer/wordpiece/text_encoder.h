// Text between added tokens -> ids: normalizer, pre-tokenizer and WordPiece in
// one pass, without memory taken for a word. Constant after construction;
// thread-safe, each thread with its own Scratch.
#ifndef ENCODERD_ENGINE_TOKENIZER_WORDPIECE_TEXT_ENCODER_H_
#define ENCODERD_ENGINE_TOKENIZER_WORDPIECE_TEXT_ENCODER_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/word_cache.h"
#include "engine/tokenizer/wordpiece/bert_normalizer.h"
#include "engine/tokenizer/wordpiece/char_table.h"
#include "engine/tokenizer/wordpiece/word_piece.h"

namespace encoderd {

class TextEncoder {
 public:
  // What a caller keeps readable after a text, and writable after its ids.
  static constexpr int64_t kTextSlack = WordCache::kMaxBytes;
  static constexpr int64_t kIdSlack = WordCache::kMaxIds + 1;

  struct Scratch {
    WordCache cache;
    std::string word;                // one word, normalized
    std::vector<NormalChar> normal;  // a stretch that needs BertNormalize()
  };

  TextEncoder(BertNormalizerOptions options, WordPiece word_piece);

  // Writes the ids of well-formed UTF-8 at [begin, end), where *end is a space
  // and kTextSlack bytes follow; returns their end. There is room for end -
  // begin + kIdSlack ids.
  int32_t* Encode(const char* begin, const char* end, Scratch* scratch,
                  int32_t* ids) const;

  // The same for text that BertNormalize() has dealt with, slower, with the
  // places of the tokens (`offsets` may be nullptr).
  int32_t* EncodeNormal(absl::Span<const NormalChar> chars, int32_t* ids,
                        std::vector<ByteOffset>* offsets,
                        Scratch* scratch) const;

  const BertNormalizerOptions& options() const { return options_; }
  const WordPiece& word_piece() const { return word_piece_; }
  const CharTable& table() const { return table_; }

 private:
  // What a byte is where a stretch may begin. kPlain: part of a word, as it is;
  // kWord: part of a word, changed.
  enum ByteKind : uint8_t { kPlain, kWord, kBlank, kSign, kNotAscii };

  const char* StretchEnd(const char* p) const;
  int32_t* EncodeStretch(const char* begin, const char* end, Scratch* scratch,
                         int32_t* ids) const;
  int32_t* EncodeWord(const char* begin, const char* end, int64_t chars,
                      int32_t* ids) const;

  BertNormalizerOptions options_;
  WordPiece word_piece_;
  CharTable table_;
  std::array<uint8_t, 256> byte_kinds_{};
  std::array<int32_t, 128> sign_ids_{};
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_WORDPIECE_TEXT_ENCODER_H_
