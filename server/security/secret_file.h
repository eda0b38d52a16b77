// A file that the operator names: a certificate, a key, a list of tokens.
#ifndef ENCODERD_SERVER_SECURITY_SECRET_FILE_H_
#define ENCODERD_SERVER_SECURITY_SECRET_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace encoderd {

inline constexpr int64_t kMaxSecretBytes = 1 << 20;

// The whole file. Follows links anywhere, because certificates are rotated by
// links. `flag`: the flag that names it, "--tls_key_file". Errors are
// "FLAG=PATH: why": UNAVAILABLE if the disk or the network file system does not
// answer, RESOURCE_EXHAUSTED for lack of memory or descriptors (FileError),
// else INVALID_ARGUMENT: missing, not readable, not a regular file, empty, or
// above kMaxSecretBytes.
absl::StatusOr<std::string> ReadSecretFile(const std::string& flag,
                                           const std::string& path);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_SECURITY_SECRET_FILE_H_
