// The form of results by the name of the file that takes them. Thread-safe: a
// pure function.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_OUTPUT_FORMAT_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_OUTPUT_FORMAT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd::ctl {

enum class OutputFormat { kAuto, kText, kJsonl, kNpy };

// The word for it in --format; of kJsonl and kNpy, also the ending of a file.
absl::string_view WordOf(OutputFormat format);

// What `format`, kAuto or one of `formats`, comes to for `output`, a file or
// "-"; never kAuto. `one_value`: jsonl is a single object, so that it may go
// into a .json. INVALID_ARGUMENT: the ending promises a format that is not
// written, or, of an .npy, not asked for; or an .npy has no file.
absl::StatusOr<OutputFormat> ChooseFormat(
    absl::string_view output, OutputFormat format,
    const std::vector<OutputFormat>& formats, bool one_value);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_OUTPUT_FORMAT_H_
