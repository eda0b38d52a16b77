#include "engine/io/write_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace {

// The folder may be of several users.
constexpr mode_t kFolderMode = 0755;
constexpr mode_t kFileMode = 0644;

absl::Status Failed(const char* what, const std::string& path) {
  return absl::PermissionDeniedError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

bool WriteAll(int fd, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    content.remove_prefix(static_cast<size_t>(count));
  }
  return ::fchmod(fd, kFileMode) == 0 && ::fsync(fd) == 0;
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& folder,
                                 const std::string& name,
                                 absl::string_view content) {
  if (::mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST)
    return Failed("make", folder);
  const std::string path = absl::StrCat(folder, "/", name);
  std::string fresh = absl::StrCat(path, ".XXXXXX");
  const int fd = ::mkostemp(fresh.data(), O_CLOEXEC);
  if (fd < 0) return Failed("write in", folder);
  absl::Status status;
  if (!WriteAll(fd, content)) status = Failed("write", path);
  ::close(fd);
  if (status.ok() && ::rename(fresh.c_str(), path.c_str()) != 0)
    status = Failed("replace", path);
  if (!status.ok()) ::unlink(fresh.c_str());
  return status;
}

}  // namespace encoderd
