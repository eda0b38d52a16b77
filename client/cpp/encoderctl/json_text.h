// The text of one JSON value. Thread-safe: a pure function.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_JSON_TEXT_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_JSON_TEXT_H_

#include <string>

#include "absl/status/statusor.h"

namespace encoderd::ctl {

// `line` is a JSON string, or an object with the text as the string `field`.
// INVALID_ARGUMENT says what it is instead, as the end of a sentence: "is
// invalid JSON at byte 3". Arrays and objects may be 64 levels deep; the field
// may be there once. Takes the memory of the text. Nothing throws.
absl::StatusOr<std::string> JsonText(const std::string& line,
                                     const std::string& field);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_JSON_TEXT_H_
