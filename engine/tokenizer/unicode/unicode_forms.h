// The normal forms of Unicode 9.0 (the reference's), character by character.
//
// Pure functions; thread-safe. Linear time but for runs of marks, which are
// sorted.
#ifndef ENCODERD_ENGINE_TOKENIZER_UNICODE_UNICODE_FORMS_H_
#define ENCODERD_ENGINE_TOKENIZER_UNICODE_UNICODE_FORMS_H_

#include <cstdint>
#include <functional>

#include "absl/strings/string_view.h"

namespace encoderd::unicode {

enum class Form { kNfc, kNfd, kNfkc, kNfkd };

// Calls put(c, change) for each character of the form of `text`, well-formed
// UTF-8; `change` as TextChange::Put takes it. Places are handed out in order:
// what canonical ordering moved takes the next one, as in the reference. Ends
// early, with a part of the form, after a put that set *stop.
void Normalize(absl::string_view text, Form form,
               const std::function<void(char32_t, int32_t)>& put,
               const bool* stop);

}  // namespace encoderd::unicode

#endif  // ENCODERD_ENGINE_TOKENIZER_UNICODE_UNICODE_FORMS_H_
