// tokenizer_config.json: the settings for a vocabulary without tokenizer.json,
// and what they change in one. For the readers of this folder only.
#ifndef ENCODERD_ENGINE_TOKENIZER_FILES_TOKENIZER_CONFIG_H_
#define ENCODERD_ENGINE_TOKENIZER_FILES_TOKENIZER_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/tokenizer.h"

namespace encoderd::tokenizer_config {

inline constexpr char kFile[] = "tokenizer_config.json";

// The file's object; an empty one where there is no file.
absl::StatusOr<Json> Read(const Folder& folder);

// "tokenizer_class", and the file that names it: this one or, if it does not,
// config.json, as in transformers. An empty name where neither does.
struct ClassName {
  std::string file = kFile;
  std::string name;
  std::string model_type;  // of config.json
};
absl::StatusOr<ClassName> ReadClass(const Folder& folder,
                                    const JsonFields& config);

// UNIMPLEMENTED unless the class is one of `classes` or not named.
absl::Status CheckClass(const ClassName& read,
                        absl::Span<const absl::string_view> classes,
                        absl::string_view family);

// The special token `key` ("cls_token": "[CLS]" or {"content": "[CLS]",
// "lstrip": ..., ...}), without its id; `fallback` where it is unset.
absl::StatusOr<AddedToken> SpecialToken(const JsonFields& config,
                                        const std::string& key,
                                        const std::string& fallback);

// A token as a text or as {"content": ..., "lstrip": ..., ...}, without its id.
// `name`: what errors call it; `special`: it is, whatever it says. Unless it
// says so, a special token is looked for in the original text, others in the
// normalized one.
absl::StatusOr<AddedToken> ReadToken(const Json& json, absl::string_view name,
                                     bool special);

// Settings that count with and without tokenizer.json. UNIMPLEMENTED for
// split_special_tokens, which would change ids; a note for truncation_side.
absl::Status CheckCommon(const JsonFields& config, TokenizerRemarks* remarks);

// The tokens of "added_tokens_decoder". UNIMPLEMENTED for one that is not in
// `known`, those of `file`: it would change ids silently. `remedy` ends the
// error.
absl::StatusOr<std::vector<AddedToken>> ReadDecoder(
    const JsonFields& config, const std::vector<AddedToken>& known,
    absl::string_view file, absl::string_view remedy);

}  // namespace encoderd::tokenizer_config

#endif  // ENCODERD_ENGINE_TOKENIZER_FILES_TOKENIZER_CONFIG_H_
