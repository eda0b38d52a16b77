// What an error of the system says of a file: whether a later attempt may
// succeed. For the files of models and those of the server.
#ifndef ENCODERD_ENGINE_IO_FILE_ERROR_H_
#define ENCODERD_ENGINE_IO_FILE_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace encoderd {

// Whether what failed with `error`, an errno of a file, may succeed later: the
// disk or the network file system does not answer, or a server of files was
// replaced.
bool FileErrorMayPass(int error);

// UNAVAILABLE if `error`, an errno, may pass, RESOURCE_EXHAUSTED for lack of
// memory or descriptors, else `other`.
absl::Status FileError(int error, absl::string_view message,
                       absl::StatusCode other = absl::StatusCode::kDataLoss);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_FILE_ERROR_H_
