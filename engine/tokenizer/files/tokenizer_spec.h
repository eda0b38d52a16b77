// What a model folder says about its tokenizer, read and checked, and nothing
// else: the files are hostile input, this is what is left of them.
//
// Errors: File::Open's; DATA_LOSS names file, key and limit; UNIMPLEMENTED
// names a component that is not supported. Pure apart from reading the files.
#ifndef ENCODERD_ENGINE_TOKENIZER_FILES_TOKENIZER_SPEC_H_
#define ENCODERD_ENGINE_TOKENIZER_FILES_TOKENIZER_SPEC_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/io/file.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/bpe/byte_pair.h"
#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/post_processor.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/unigram/unigram.h"
#include "engine/tokenizer/wordpiece/word_piece.h"

namespace encoderd {

using ModelSpec =
    std::variant<WordPieceOptions, BytePairOptions, UnigramOptions>;

struct TokenizerSpec {
  static constexpr int64_t kMaxFileBytes = 64 << 20;

  std::vector<NormalizerStep> normalizer;  // one after the other; none: empty
  // The normalizer is Lowercase, or a sequence with a Lowercase that is not
  // part of another sequence in it.
  bool lowercase_on_top = false;
  std::vector<PreTokenizerStep> pre_tokenizer;  // likewise
  // [id], of the model. Empty, of vocab.txt: no text has this id.
  std::vector<std::string> vocabulary;
  bool repeats_entries = false;  // vocab.txt does: new ids would be others
  ModelSpec model;
  PostProcessor post_processor;
  // Ids are those of `vocabulary`, or follow its last one without a gap.
  std::vector<AddedToken> added_tokens;
  TokenizerRemarks remarks;
  std::string rules_sha256;  // of RulesText, once nothing changes any more
};

// What decides ids, apart from the vocabulary's entries and the template. Two
// specs with the same text, entries and template give the same ids.
std::string RulesText(const TokenizerSpec& spec);

// tokenizer.json. NOT_FOUND without the file.
absl::StatusOr<TokenizerSpec> ReadTokenizerJson(const Folder& folder);

// vocab.json, merges.txt and, if there is one, tokenizer_config.json: RoBERTa's
// or GPT-2's older files. NOT_FOUND without one of the two.
absl::StatusOr<TokenizerSpec> ReadVocabularyAndMerges(const Folder& folder);

// vocab.txt (one entry a line) and, if there is one, tokenizer_config.json.
// NOT_FOUND without vocab.txt.
absl::StatusOr<TokenizerSpec> ReadVocabulary(const Folder& folder);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_FILES_TOKENIZER_SPEC_H_
