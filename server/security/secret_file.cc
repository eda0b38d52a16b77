#include "server/security/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/io/file_error.h"

namespace encoderd {
namespace {

absl::Status Bad(const std::string& name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", why));
}

absl::Status Unreadable(const std::string& name, int error) {
  return FileError(
      error, absl::StrCat(name, ": cannot be read: ", std::strerror(error)),
      absl::StatusCode::kInvalidArgument);
}

}  // namespace

absl::StatusOr<std::string> ReadSecretFile(const std::string& flag,
                                           const std::string& path) {
  const std::string name = absl::StrCat(flag, "=", path);
  // Otherwise a FIFO without a writer would hang.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Unreadable(name, errno);
  const absl::Cleanup closes = [fd] { close(fd); };
  struct stat info = {};
  if (fstat(fd, &info) != 0) return Unreadable(name, errno);
  if (!S_ISREG(info.st_mode)) return Bad(name, "is not a regular file");
  std::string bytes(kMaxSecretBytes + 1, '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t count = read(fd, bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Unreadable(name, errno);
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  if (size == 0) return Bad(name, "is empty");
  if (size > kMaxSecretBytes) {
    return Bad(name, absl::StrCat("has more than ", kMaxSecretBytes, " bytes"));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace encoderd
