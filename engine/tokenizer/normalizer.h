// Changes text before it is cut into words: the "normalizer" of tokenizer.json,
// a sequence of steps. Constant after construction; thread-safe, each thread
// with its own Scratch. Linear time.
#ifndef ENCODERD_ENGINE_TOKENIZER_NORMALIZER_H_
#define ENCODERD_ENGINE_TOKENIZER_NORMALIZER_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/tokenizer/normal_text.h"
#include "engine/tokenizer/unicode/unicode_forms.h"
#include "engine/tokenizer/unigram/chars_map.h"
#include "engine/tokenizer/wordpiece/bert_normalizer.h"

namespace encoderd {

// "NFC", "NFD", "NFKC", "NFKD".
struct UnicodeFormStep {
  unicode::Form form = unicode::Form::kNfc;
};
// "Lowercase", each character by itself.
struct LowercaseStep {};
// "StripAccents": drops marks, without decomposing.
struct StripAccentsStep {};
// "Strip": white space at the ends.
struct StripStep {
  bool left = true;
  bool right = true;
};
// "Prepend": put before text that is not empty.
struct PrependStep {
  std::string text;
};
// "Replace": a string, or as an expression the runs of one character: X{n,}.
struct ReplaceStep {
  std::string pattern;  // not empty; of runs the one character
  std::string content;  // what takes its place
  int32_t min_run = 0;  // 0: a string; n: n or more in a row
};

using NormalizerStep =
    std::variant<BertNormalizerOptions, CharsMap, UnicodeFormStep,
                 LowercaseStep, StripAccentsStep, StripStep, PrependStep,
                 ReplaceStep>;

class Normalizer {
 public:
  struct Scratch {
    NormalText other;
    std::vector<NormalChar> chars;
    void Shrink();
  };

  explicit Normalizer(std::vector<NormalizerStep> steps)
      : steps_(std::move(steps)) {}

  // Ends at the first step whose result exceeds the text's limit.
  void Apply(NormalText* text, Scratch* scratch) const;
  // The same for a text alone; of one that grows beyond NormalText::Limit, a
  // part.
  std::string Apply(const std::string& text) const;

 private:
  std::vector<NormalizerStep> steps_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_NORMALIZER_H_
