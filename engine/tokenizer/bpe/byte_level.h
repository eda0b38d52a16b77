// Byte-level text: every byte is a separate character, and words are cut as in
// GPT-2.
//
// Vocabularies write a byte as one printable character (a space as U+0120);
// here words stay bytes, and only the vocabulary is translated, once. Pure
// functions; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_BPE_BYTE_LEVEL_H_
#define ENCODERD_ENGINE_TOKENIZER_BPE_BYTE_LEVEL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/tokenizer/normal_text.h"

namespace encoderd::byte_level {

// The bytes that an entry of a byte-level vocabulary stands for; nullopt when
// one of its characters stands for none. `entry`: well-formed UTF-8.
std::optional<std::string> ToBytes(absl::string_view entry);

// The same the other way.
std::string FromBytes(absl::string_view bytes);

// Cuts text[part), well-formed UTF-8, into what the expression
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// matches one after the other, and appends the parts, which together are
// `part`. Linear time.
void SplitWords(absl::string_view text, TextRange part,
                std::vector<TextRange>* out);

}  // namespace encoderd::byte_level

#endif  // ENCODERD_ENGINE_TOKENIZER_BPE_BYTE_LEVEL_H_
