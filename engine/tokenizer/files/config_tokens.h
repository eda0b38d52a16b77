// Tokens that a tokenizer's other files add to tokenizer.json's.
#ifndef ENCODERD_ENGINE_TOKENIZER_FILES_CONFIG_TOKENS_H_
#define ENCODERD_ENGINE_TOKENIZER_FILES_CONFIG_TOKENS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/tokenizer/files/tokenizer_spec.h"

namespace encoderd {

// Appends to spec->added_tokens the special tokens that a file names
// ("mask_token", "additional_special_tokens", ...) and that are not there yet,
// with a note. One that the vocabulary lacks gets the next free id, as in
// transformers.
absl::Status AddSpecialTokens(const JsonFields& fields, TokenizerSpec* spec);

// A special token that tokenizer_config.json may rename.
struct NamedToken {
  const char* key;
  const char* fallback;
  bool needed;  // DATA_LOSS if the vocabulary lacks it
};

// Appends those of `tokens` that the vocabulary, of the file `vocabulary_file`,
// has and spec->added_tokens has not yet. Returns the id of each; -1 for one
// that the vocabulary lacks.
absl::StatusOr<std::vector<int32_t>> AddNamedTokens(
    const JsonFields& config, absl::Span<const NamedToken> tokens,
    absl::string_view vocabulary_file, TokenizerSpec* spec);

// Reads tokenizer_config.json next to `vocabulary_file`, whose vocabulary
// `spec` has: what counts for every tokenizer, then `read_config`, which adds
// the file's own to `spec`, then special tokens as AddSpecialTokens does; the
// flags of "added_tokens_decoder" count. UNIMPLEMENTED when that or a file
// added_tokens.json adds a token that spec->added_tokens lacks: it would change
// ids silently.
absl::Status ReadTokenizerConfig(
    const Folder& folder, absl::string_view vocabulary_file,
    absl::FunctionRef<absl::Status(const JsonFields& config)> read_config,
    TokenizerSpec* spec);

// What changes next to a tokenizer.json, as in transformers 4 and 5: the flags
// of "added_tokens_decoder" in `config`, tokenizer_config.json, replace those
// of the file's added tokens, with a note; its special tokens are added and,
// without "added_tokens_decoder", those of special_tokens_map.json.
// UNIMPLEMENTED for other tokens in "added_tokens_decoder" or
// added_tokens.json.
absl::Status AddConfigTokens(const Folder& folder, const JsonFields& config,
                             TokenizerSpec* spec);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_FILES_CONFIG_TOKENS_H_
