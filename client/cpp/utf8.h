// UTF-8 as protobuf wants it in a string field: no stray or missing
// continuation bytes, no overlong forms, no surrogates, at most U+10FFFF.
#ifndef ENCODERD_CLIENT_CPP_UTF8_H_
#define ENCODERD_CLIENT_CPP_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace encoderd::client {

// The number of leading bytes of `text` that are valid: text.size() if all
// are, else the offset of the first bad sequence.
size_t ValidUtf8Prefix(absl::string_view text);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_UTF8_H_
