// Text -> token ids, exactly as Hugging Face `tokenizers` would give them.
//
// A Tokenizer is constant after construction and shared by all threads; each
// thread brings its own TokenizerScratch, which holds buffers and a word cache.
// Time is linear in the text's bytes.
#ifndef ENCODERD_ENGINE_TOKENIZER_TOKENIZER_H_
#define ENCODERD_ENGINE_TOKENIZER_TOKENIZER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd {

// Byte range [begin, end) of the original text that a token stands for; 0,0 for
// special tokens that the template added. Of a pair, offsets of the second text
// count from that text's own start.
struct ByteOffset {
  int32_t begin = 0;
  int32_t end = 0;
};

struct Encoding {
  std::vector<int32_t> token_ids;    // [n], special tokens included
  std::vector<int32_t> segment_ids;  // [n]
  std::vector<ByteOffset> offsets;   // [n], only if asked for
  std::vector<uint8_t>
      special;  // [n], 1: added by the template, only if asked for
  bool pair = false;
  std::array<int64_t, 2> text_tokens{};  // tokens of each text; sums to n less
                                         // the template's special tokens
  std::array<int64_t, 2> text_begins{};  // first token of each text; of a
                                         // single text, [1] means nothing

  void Clear() {
    pair = false;
    text_tokens = {};
    text_begins = {};
    token_ids.clear();
    segment_ids.clear();
    offsets.clear();
    special.clear();
  }
};

enum class TruncateSide { kStart, kEnd };  // which end of the text is cut off

// Buffers and word cache of one thread; each kind of tokenizer derives its own.
// Bounded: the cache is dropped when it is full.
class TokenizerScratch {
 public:
  virtual ~TokenizerScratch() = default;
};
using TokenizerScratchPtr = std::unique_ptr<TokenizerScratch>;

// Sentences for the log.
struct TokenizerRemarks {
  std::vector<std::string> notes;     // what is ignored or replaced, and why
  std::vector<std::string> warnings;  // ids may differ from those of others
};

struct TokenizerOptions {
  // Of the model folder, where the files are; "": the model folder itself.
  // Links among them may lead to any place in the model folder.
  std::string subfolder = "";
  // Texts are lowercased first, each character by itself, whatever the files
  // say (sentence-transformers' do_lower_case).
  bool lowercase = false;
  // Rows of the model's token table; 0: any. An added token beyond them is not
  // looked for in texts, with a note.
  int32_t token_rows = 0;
  // The model adds the token table's rows of segment ids (GPT-2 does), which is
  // not computed: UNIMPLEMENTED where transformers would give it segment ids.
  bool refuse_segments = false;
};

class Tokenizer {
 public:
  struct EncodeOptions {
    bool offsets = false;  // fill Encoding::offsets and ::special (slower)
  };

  // From tokenizer.json or, without one, vocab.txt or vocab.json and
  // merges.txt, with tokenizer_config.json, which overrides tokenizer.json
  // wherever it does so in transformers. Components that are not supported are
  // refused by name (UNIMPLEMENTED); a bad file is DATA_LOSS. Leftover
  // `truncation` and `padding` blocks are ignored and mentioned in remarks().
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Load(
      const std::string& model_folder, const TokenizerOptions& options = {});

  virtual ~Tokenizer() = default;

  virtual TokenizerScratchPtr NewScratch() const = 0;

  // Replaces *out. INVALID_ARGUMENT (INVALID_UTF8, with byte_offset) when a
  // text is not UTF-8; the detail's field is "text", "first" or "second". An
  // empty text gives the template alone. No limit on tokens: callers compare
  // with max_len. A text over 2 GiB is rejected: offsets are 32-bit. So is one
  // that normalizer and pre-tokenizer make larger than both 1 MiB and 4 times
  // its bytes: INVALID_ARGUMENT (REQUEST_TOO_LARGE; text_bytes,
  // normalized_bytes or more, limit).
  virtual absl::Status Encode(absl::string_view text,
                              const EncodeOptions& options,
                              TokenizerScratch* scratch,
                              Encoding* out) const = 0;
  virtual absl::Status EncodePair(absl::string_view first,
                                  absl::string_view second,
                                  const EncodeOptions& options,
                                  TokenizerScratch* scratch,
                                  Encoding* out) const = 0;

  // Cuts an encoding made by Encode or EncodePair down to max_len tokens,
  // keeping the template's special tokens; of a pair, the longer text is cut
  // first. max_len >= the number of special tokens.
  virtual void Truncate(int64_t max_len, TruncateSide side,
                        Encoding* encoding) const = 0;

  virtual int32_t vocab_size() const = 0;  // ids are 0 .. vocab_size - 1
  virtual absl::string_view Token(
      int32_t id) const = 0;  // "" for an id out of range
  // A token that stands for no text ([CLS], [PAD], [UNK], ...), wherever it is.
  virtual bool is_special(int32_t id) const = 0;
  virtual int32_t num_special_tokens(bool pair) const = 0;
  virtual const std::string& algorithm() const = 0;  // "WordPiece", ...
  virtual const TokenizerRemarks& remarks() const = 0;
  // Of all that decides ids, apart from tokens' texts and the template.
  virtual const std::string& rules_sha256() const = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_TOKENIZER_H_
