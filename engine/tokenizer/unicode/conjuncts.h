// Indic_Conjunct_Break, Linker and Consonant, as Unicode 16.0 has them: rule
// GB9c of grapheme clusters. The ICU that encoderd runs with may be older. Pure
// functions.
#ifndef ENCODERD_ENGINE_TOKENIZER_UNICODE_CONJUNCTS_H_
#define ENCODERD_ENGINE_TOKENIZER_UNICODE_CONJUNCTS_H_

namespace encoderd::unicode {

// A mark that joins the consonants before and after it into one cluster.
bool IsConjunctLinker(char32_t c);

bool IsConjunctConsonant(char32_t c);

}  // namespace encoderd::unicode

#endif  // ENCODERD_ENGINE_TOKENIZER_UNICODE_CONJUNCTS_H_
