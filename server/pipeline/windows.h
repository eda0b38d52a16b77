// A text too long for the model, cut into windows: which tokens of the text
// each has. A pure rule.
//
// Every window has the special tokens of the template around as much of the
// text as fits; neighbors share `overlap` tokens of the text; the last one has
// the rest, at least overlap + 1 tokens.
#ifndef ENCODERD_SERVER_PIPELINE_WINDOWS_H_
#define ENCODERD_SERVER_PIPELINE_WINDOWS_H_

#include <cstdint>

namespace encoderd {

struct WindowRule {
  int64_t max_len = 0;         // most tokens of a window, special ones included
  int64_t special_tokens = 0;  // of each window; below max_len
  int64_t overlap = 0;         // below max_len - special_tokens
};

struct TextRange {
  int64_t begin = 0;  // of the text's tokens
  int64_t end = 0;
};

// How many windows a text has; 1 if it fits into one.
int64_t CountWindows(const WindowRule& rule, int64_t text_tokens);

// Tokens of all windows together, special tokens included.
int64_t WindowTokens(const WindowRule& rule, int64_t text_tokens);

// Window `index` of CountWindows.
TextRange WindowAt(const WindowRule& rule, int64_t text_tokens, int64_t index);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_WINDOWS_H_
