#include "engine/io/write_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace encoderd {
namespace {

// The folder may be of several users.
constexpr mode_t kFolderMode = 0755;
constexpr mode_t kFileMode = 0644;
constexpr absl::Duration kPause = absl::Milliseconds(20);

absl::Status Failed(const char* what, const std::string& path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path));
}

absl::Status MakeFolder(const std::string& folder) {
  return ::mkdir(folder.c_str(), kFolderMode) == 0 || errno == EEXIST
             ? absl::OkStatus()
             : Failed("make", folder);
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

// A name in the folder lasts when the folder's own content is on the disk.
absl::Status BringToTheDisk(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Failed("bring to the disk", folder);
  absl::Status status;
  // EINVAL: a file system that has nothing to bring.
  if (::fsync(fd) != 0 && errno != EINVAL)
    status = Failed("bring to the disk", folder);
  ::close(fd);
  return status;
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& folder,
                                 const std::string& name,
                                 absl::string_view content) {
  absl::Status status = MakeFolder(folder);
  if (!status.ok()) return status;
  const std::string path = absl::StrCat(folder, "/", name);
  std::string fresh = absl::StrCat(path, ".XXXXXX");
  const int fd = ::mkostemp(fresh.data(), O_CLOEXEC);
  if (fd < 0) return Failed("write in", folder);
  if (!WriteAll(fd, content)) status = Failed("write", path);
  ::close(fd);
  if (status.ok() && ::rename(fresh.c_str(), path.c_str()) != 0)
    status = Failed("replace", path);
  if (!status.ok()) {
    ::unlink(fresh.c_str());
    return status;
  }
  return BringToTheDisk(folder);
}

absl::StatusOr<FileLock> FileLock::Take(const std::string& folder,
                                        const std::string& name,
                                        const Sleep& sleep) {
  const absl::Status made = MakeFolder(folder);
  if (!made.ok()) return made;
  const std::string path = absl::StrCat(folder, "/", name);
  // O_NONBLOCK: a FIFO of that name must not hang here.
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | kFlags, kFileMode);
  // Another user's; only network file systems want it writable for a lock.
  if (fd < 0 && errno == EACCES) fd = ::open(path.c_str(), O_RDONLY | kFlags);
  if (fd < 0) return Failed("open", path);
  FileLock lock(fd);
  absl::Duration waited;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return Failed("lock", path);
    if (waited >= kPatience) {
      return absl::UnavailableError(absl::StrCat(
          "cannot lock ", path, ": another process has held it for ",
          absl::FormatDuration(kPatience)));
    }
    sleep(kPause);
    waited += kPause;
  }
  return lock;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace encoderd
