// Extended grapheme clusters (UAX 29), what a reader takes for one character.
// Pure functions; thread-safe.
#ifndef ENCODERD_ENGINE_TOKENIZER_UNICODE_GRAPHEMES_H_
#define ENCODERD_ENGINE_TOKENIZER_UNICODE_GRAPHEMES_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace encoderd::unicode {

// End of the cluster that begins at `begin`, a boundary before the end of
// `text`, which is well-formed UTF-8.
size_t ClusterEnd(absl::string_view text, size_t begin);

}  // namespace encoderd::unicode

#endif  // ENCODERD_ENGINE_TOKENIZER_UNICODE_GRAPHEMES_H_
