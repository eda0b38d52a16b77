// What to do about an error of the server's, in the flags of the command that
// met it. Thread-safe: a pure function.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_REMEDY_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_REMEDY_H_

#include <string>

#include "absl/status/status.h"
#include "client/cpp/encoderctl/flags.h"

namespace encoderd::ctl {

// "; take it with --truncate=end ...": the end of the sentence that describes
// `status`. Names only flags that `flags` has; empty where nothing is to be
// done, or the message says it.
std::string Remedy(const absl::Status& status, const Flags& flags);

// client::Describe(status) with the names of `flags` for the fields of a
// request, and without what the server advises where a text is too long, if
// Remedy says it.
std::string DescribeInFlags(const absl::Status& status, const Flags& flags);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_REMEDY_H_
