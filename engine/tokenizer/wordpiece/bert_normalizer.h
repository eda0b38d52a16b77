// BERT's normalizer, step by step: the readable truth, which also knows where
// every character came from. The fast way (char_table.h) is derived from it.
//
// Steps, each switchable: clean_text removes control characters and makes white
// space plain; handle_chinese_chars puts spaces around ideographs;
// strip_accents decomposes (NFD) and drops nonspacing marks; lowercase. Pure
// function; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_WORDPIECE_BERT_NORMALIZER_H_
#define ENCODERD_ENGINE_TOKENIZER_WORDPIECE_BERT_NORMALIZER_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace encoderd {

struct BertNormalizerOptions {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};

// A character after normalization and the bytes [begin, end) of the original
// that it stands for.
struct NormalChar {
  char32_t c = 0;
  int32_t begin = 0;
  int32_t end = 0;
};

// Normalizes well-formed UTF-8; replaces *out. Offsets count from `origin`.
void BertNormalize(absl::string_view text, int32_t origin,
                   const BertNormalizerOptions& options,
                   std::vector<NormalChar>* out);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_WORDPIECE_BERT_NORMALIZER_H_
