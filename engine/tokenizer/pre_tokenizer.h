// Cuts normalized text into the words that a model encodes one by one: the
// "pre_tokenizer" of tokenizer.json, a sequence of steps.
//
// Every step sees the words of the one before. Some change text as they cut it
// (a space put before the first word), so words may lie in another text than
// the one that came in. Constant after construction; thread-safe, each thread
// with its own Scratch. Linear time.
#ifndef ENCODERD_ENGINE_TOKENIZER_PRE_TOKENIZER_H_
#define ENCODERD_ENGINE_TOKENIZER_PRE_TOKENIZER_H_

#include <utility>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "engine/tokenizer/normal_text.h"

namespace encoderd {

// "ByteLevel": cuts as GPT-2 does. A model that reads bytes follows.
struct ByteLevelSplit {
  bool add_prefix_space = true;  // unless there is one
  bool use_regex = true;         // else words stay whole
};

// "BertPreTokenizer": white space separates, punctuation stands alone.
struct BertSplit {};

// "WhitespaceSplit": white space separates.
struct WhitespaceSplit {};
// "Whitespace": likewise, and runs of word characters from runs of others.
struct WordSplit {};

// "Metaspace": spaces become a mark, one may be put before a word, and words
// begin at each.
struct MetaspaceSplit {
  enum Prepend { kAlways, kFirst, kNever };  // unless there is one
  char32_t mark = 0x2581;
  Prepend prepend = kAlways;  // kFirst: where the original text begins
  bool split = true;
};

using PreTokenizerStep =
    std::variant<ByteLevelSplit, BertSplit, WhitespaceSplit, WordSplit,
                 MetaspaceSplit>;

class PreTokenizer {
 public:
  struct Scratch {
    NormalText texts[2];
    std::vector<TextRange> ranges[2];
    void Shrink();
  };

  // Not empty, in the order of the text. Valid until the scratch is used again.
  struct Words {
    const NormalText* text = nullptr;
    absl::Span<const TextRange> words;
  };

  explicit PreTokenizer(std::vector<PreTokenizerStep> steps)
      : steps_(std::move(steps)) {}

  // The words of a part of `text`; none that count if the text that they lie in
  // has exceeded its limit, which is that of `text`.
  Words Split(const NormalText& text, TextRange part, Scratch* scratch) const;

 private:
  std::vector<PreTokenizerStep> steps_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_PRE_TOKENIZER_H_
