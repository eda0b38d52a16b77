// What the reference tokenizer takes each code point for.
//
// Hugging Face `tokenizers` has its properties from four Unicode tables of
// different ages, and ids are equal only if ours agree on every code point:
//   categories (control, mark, punctuation)  Unicode 8.0
//   normal forms, marks (StripAccents)       Unicode 9.0
//   letters of a "word" (\w), \p{L}, \p{N}  Unicode 16.0
//   lower case, white space, graphemes       Unicode 17.0
// The values come from ICU, whichever version is installed; u_charAge hides
// what an older table cannot know, and short lists add what ICU cannot know yet
// or what changed in between. The differential test compares all code points.
//
// Pure functions; thread-safe. `c` is any code point; surrogates never occur.
#ifndef ENCODERD_ENGINE_TOKENIZER_UNICODE_UNICODE_RULES_H_
#define ENCODERD_ENGINE_TOKENIZER_UNICODE_UNICODE_RULES_H_

#include <cstdint>
#include <string>

namespace encoderd::unicode {

inline constexpr char32_t kCodePoints = 0x110000;

// From here on a code point that ICU calls unassigned is nothing but itself.
inline constexpr char32_t kNoNewCapitals = 0x20000;
// Planes 4 to 13 are empty in every Unicode version that the rules know.
inline constexpr char32_t kEmptyFirst = 0x40000;
inline constexpr char32_t kEmptyEnd = 0xE0000;

// True when clean_text removes `c`: NUL, U+FFFD, control, format and private
// use; tab and line breaks stay (they are spaces).
bool IsRemoved(char32_t c);

// White space, which separates words.
bool IsSpace(char32_t c);

// A separate word: any punctuation, and every ASCII sign ($, +, < ...).
bool IsPunctuation(char32_t c);

// An ideograph that handle_chinese_chars turns into a separate word.
bool IsCjk(char32_t c);

// A mark that strip_accents removes after decomposition.
bool IsNonspacingMark(char32_t c);

// \w of a regular expression: what makes an added token's neighbor a word.
bool IsWordChar(char32_t c);

// \p{L} and \p{N} of the expression that cuts byte-level words.
bool IsLetter(char32_t c);
bool IsNumber(char32_t c);

// A combining mark of Unicode 16.0 or 17.0 that an older ICU does not know; it
// extends the grapheme cluster before it.
bool IsNewMark(char32_t c);

// Class of canonical ordering; 0: a starter, which nothing is moved across.
uint8_t CombiningClass(char32_t c);

// Appends the full canonical decomposition, or `c` itself.
void AppendDecomposed(char32_t c, std::u32string* out);

// Appends the full compatibility decomposition, or `c` itself.
void AppendCompatible(char32_t c, std::u32string* out);

// True: a starter that the canonical decomposition (or the compatibility one)
// leaves as it is. Faster than to ask for both.
bool IsInert(char32_t c, bool compatible);

// The character that the two compose to; 0: none.
char32_t Compose(char32_t first, char32_t second);

// Any mark: what the normalizer StripAccents drops.
bool IsMark(char32_t c);

// Appends the lower case of `c` alone: no context, no language (a final sigma
// is like any other; U+0130 becomes i and U+0307).
void AppendLower(char32_t c, std::u32string* out);

}  // namespace encoderd::unicode

#endif  // ENCODERD_ENGINE_TOKENIZER_UNICODE_UNICODE_RULES_H_
