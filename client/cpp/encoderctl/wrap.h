// Text for a terminal: help in lines that fit, messages that do not control it.
// Thread-safe: pure functions.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_WRAP_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_WRAP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace encoderd::ctl {

// `text` in lines of at most 79 columns, each after `indent` spaces and with a
// line end. A word that is longer gets its own line.
std::string Wrap(absl::string_view text, int indent);

// `text` with control characters and what is not UTF-8 as \xNN: a file or a
// server must not control the terminal.
std::string Printable(absl::string_view text);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_WRAP_H_
