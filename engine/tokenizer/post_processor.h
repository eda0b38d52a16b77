// What happens to the tokens of a text at the end: the "post_processor" of
// tokenizer.json. A template puts special tokens around them; with byte-level
// words the places of tokens may be trimmed of their spaces.
#ifndef ENCODERD_ENGINE_TOKENIZER_POST_PROCESSOR_H_
#define ENCODERD_ENGINE_TOKENIZER_POST_PROCESSOR_H_

#include "absl/strings/string_view.h"
#include "engine/tokenizer/template.h"
#include "engine/tokenizer/tokenizer.h"

namespace encoderd {

struct PostProcessor {
  Template pieces;
  bool trim_offsets = false;
  // A single space before the first token was put there: it stays.
  bool add_prefix_space = false;
};

// Moves the ends of `place`, a place in `text`, over as many characters as
// there are spaces (white space, or U+0120, which is the byte-level space) at
// the ends of the token's text `value`. `first`: it is the text's first token.
void TrimOffset(const PostProcessor& post, absl::string_view value,
                absl::string_view text, bool first, ByteOffset* place);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_POST_PROCESSOR_H_
