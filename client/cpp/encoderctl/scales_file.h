// The steps of int8 and uint8 rows, in an .npy next to theirs. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_SCALES_FILE_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_SCALES_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "client/cpp/encoderctl/row_file.h"
#include "encoderd/v1/encoder.pb.h"

namespace encoderd::ctl {

inline const RowLayout kScaleLayout{"<f4", 1, 4};

// Whether each row in this encoding has a scale, which is not in the row.
bool HasOwnScale(v1::Encoding encoding);

// Of the rows in the file `output`.
std::string ScalesPathOf(const std::string& output);

// FAILED_PRECONDITION if there is a file at `path` that does not begin as
// scales do: it is somebody else's, and not to be overwritten.
absl::Status CheckScalesFile(const std::string& path);

// Removes the file `scales` if it belongs to the int8 or uint8 rows in
// `output`: next to rows of another encoding it would say what is not so. One
// that may be somebody else's stays.
void RemoveOldScales(const std::string& output, const std::string& scales);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_SCALES_FILE_H_
