// The added tokens of a tokenizer, sorted out: which are looked for in the
// text, which in the normalized text, which have ids beyond the vocabulary, and
// which are special. Constant after Build; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_ADDED_VOCABULARY_H_
#define ENCODERD_ENGINE_TOKENIZER_ADDED_VOCABULARY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/added_tokens.h"

namespace encoderd {

struct AddedVocabulary {
  AddedTokens raw;                   // looked for in the text as it is
  AddedTokens normalized;            // looked for in the normalized text
  std::vector<std::string> beyond;   // with the ids after the vocabulary [i]
  std::vector<int32_t> special_ids;  // sorted

  // `tokens` as in TokenizerSpec; `normalize` is the tokenizer's normalizer.
  // DATA_LOSS as AddedTokens::Build.
  static absl::StatusOr<AddedVocabulary> Build(
      std::vector<AddedToken> tokens, size_t vocabulary_size,
      const std::function<std::string(const std::string&)>& normalize);
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_ADDED_VOCABULARY_H_
