// Tokens that a tokenizer's other files add to tokenizer.json's.
#ifndef ENCODERD_ENGINE_TOKENIZER_FILES_CONFIG_TOKENS_H_
#define ENCODERD_ENGINE_TOKENIZER_FILES_CONFIG_TOKENS_H_

#include <string>

#include "absl/status/status.h"
#include "engine/io/json.h"
#include "engine/tokenizer/files/tokenizer_spec.h"

namespace encoderd {

// As transformers 4 and 5 do it, each with a note: the flags of
// "added_tokens_decoder" replace those of the file's added tokens; special
// tokens that `config`, tokenizer_config.json, names ("mask_token",
// "additional_special_tokens", ...) become added tokens if the vocabulary has
// them. Without "added_tokens_decoder" special_tokens_map.json counts, too.
// UNIMPLEMENTED for other tokens that "added_tokens_decoder" or
// added_tokens.json add.
absl::Status AddConfigTokens(const std::string& folder,
                             const JsonFields& config, TokenizerSpec* spec);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_FILES_CONFIG_TOKENS_H_
