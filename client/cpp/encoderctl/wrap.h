// Text for --help, in lines that fit a terminal. Thread-safe: a pure function.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_WRAP_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_WRAP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace encoderd::ctl {

// `text` in lines of at most 79 columns, each after `indent` spaces and with a
// line end. A word that is longer gets its own line.
std::string Wrap(absl::string_view text, int indent);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_WRAP_H_
