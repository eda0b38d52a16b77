// The form of results by the name of the file that takes them. Thread-safe: a
// pure function.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_OUTPUT_FORMAT_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_OUTPUT_FORMAT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd::ctl {

// What `format`, "auto" or one of `formats` (text, jsonl, npy), comes to for
// `output`, a file or "-". `one_value`: jsonl is a single object, so that it
// may go into a .json. INVALID_ARGUMENT: the ending promises a format that is
// not written, or, of an .npy, not asked for; or an .npy has no file.
absl::StatusOr<std::string> OutputFormat(
    absl::string_view output, absl::string_view format,
    const std::vector<std::string>& formats, bool one_value);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_OUTPUT_FORMAT_H_
