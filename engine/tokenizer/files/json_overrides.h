// What tokenizer_config.json changes in a tokenizer.json next to it.
#ifndef ENCODERD_ENGINE_TOKENIZER_FILES_JSON_OVERRIDES_H_
#define ENCODERD_ENGINE_TOKENIZER_FILES_JSON_OVERRIDES_H_

#include <string>

#include "absl/status/status.h"
#include "engine/io/file.h"
#include "engine/tokenizer/files/tokenizer_spec.h"

namespace encoderd {

// As transformers has it, versions 4 and 5: for BERT's kind of tokenizer
// do_lower_case, strip_accents and tokenize_chinese_chars beat the file's
// BertNormalizer (of MPNet, version 4 leaves out the last), for RoBERTa's and
// GPT-2's add_prefix_space its ByteLevel. Each change is a note. Where
// transformers would only fall back to a default, or version 5 sets other parts
// by the class alone, the file holds, with a warning. UNIMPLEMENTED for
// split_special_tokens, which would change ids. Tokens as in config_tokens.h.
absl::Status OverrideByConfig(const Folder& folder, TokenizerSpec* spec);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_FILES_JSON_OVERRIDES_H_
