// SHA-256 of files and strings, by libcrypto (which uses the CPU's own
// instructions where it has them).
#ifndef ENCODERD_ENGINE_IO_SHA256_H_
#define ENCODERD_ENGINE_IO_SHA256_H_

#include <atomic>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/io/file.h"

namespace encoderd {

// Lower-case hex, 64 characters. Errors of File::ReadAt; CANCELLED
// soon after `stop`, which may be null, is true.
absl::StatusOr<std::string> Sha256OfFile(
    const File& file, const std::atomic<bool>* stop = nullptr);
absl::StatusOr<std::string> Sha256OfString(absl::string_view text);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_SHA256_H_
