#include "client/cpp/encoderctl/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace encoderd::ctl {
namespace {

constexpr char kBrokenPipe[] = "encoderctl/broken_pipe";

// 0, or an errno.
int WriteAll(int descriptor, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(descriptor, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return 0;
}

// A file that is written in part. A link stays, to an empty file.
void Discard(const std::string& path, int descriptor) {
  struct stat named = {};
  if (lstat(path.c_str(), &named) == 0 && S_ISREG(named.st_mode))
    unlink(path.c_str());
  [[maybe_unused]] const int error = ftruncate(descriptor, 0);
}

// Makes sure of the room first, so that a full disk leaves what is there.
// Returns 0, or an errno.
int Overwrite(const std::string& path, int descriptor,
              absl::string_view bytes) {
  struct stat before = {};
  if (fstat(descriptor, &before) != 0) return errno;
  const auto size = static_cast<off_t>(bytes.size());
  const int no_room = size == 0 ? 0 : posix_fallocate(descriptor, 0, size);
  if (no_room != 0) {
    if (ftruncate(descriptor, before.st_size) != 0) return errno;
    return no_room;
  }
  int error = WriteAll(descriptor, bytes);
  if (error == 0 && ftruncate(descriptor, size) != 0) error = errno;
  if (error != 0) Discard(path, descriptor);
  return error;
}

}  // namespace

bool Names(const std::string& path, int descriptor) {
  struct stat named = {};
  struct stat open = {};
  return stat(path.c_str(), &named) == 0 && fstat(descriptor, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

absl::Status CheckWritable(const std::string& path) {
  if (path == "-" || access(path.c_str(), W_OK) == 0) return absl::OkStatus();
  const std::string folder = std::filesystem::path(path).parent_path();
  if (errno == ENOENT &&
      access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0) {
    return absl::OkStatus();
  }
  return CannotOpen(path, errno);
}

absl::Status CannotWrite(absl::string_view name, int error) {
  absl::Status status = absl::DataLossError(
      absl::StrCat("cannot write to ", name, error == 0 ? "" : ": ",
                   error == 0 ? "" : std::generic_category().message(error)));
  if (error == EPIPE) status.SetPayload(kBrokenPipe, absl::Cord());
  return status;
}

absl::Status CannotOpen(absl::string_view name, int error) {
  return absl::NotFoundError(absl::StrCat(
      "cannot write to ", name, ": ", std::generic_category().message(error)));
}

bool IsBrokenPipe(const absl::Status& status) {
  return status.GetPayload(kBrokenPipe).has_value();
}

absl::Status CheckDistinct(const std::vector<std::string>& files) {
  std::error_code neither;  // one that is not there is no other
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!std::filesystem::equivalent(files[i], files[j], neither)) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          files[i], ", which goes with --output, is the same file as ",
          files[j], "; remove it, or write to another --output"));
    }
  }
  return absl::OkStatus();
}

OutputLock::~OutputLock() {
  if (descriptor_ < 0) return;
  struct stat info = {};
  if (made_ && fstat(descriptor_, &info) == 0 && info.st_size == 0 &&
      Names(path_, descriptor_)) {
    unlink(path_.c_str());
  }
  close(descriptor_);
}

absl::Status OutputLock::Take(const std::string& path, Links links) {
  path_ = path;
  const int both =
      O_RDWR | O_CREAT | O_CLOEXEC | (links == Links::kRefuse ? O_NOFOLLOW : 0);
  while (true) {
    descriptor_ = open(path.c_str(), both | O_EXCL, 0666);
    made_ = descriptor_ >= 0;
    if (!made_) descriptor_ = open(path.c_str(), both, 0666);
    if (descriptor_ < 0 && links == Links::kRefuse && errno == ELOOP) {
      return absl::FailedPreconditionError(absl::StrCat(
          path,
          " is a symbolic link; remove it, or write to another --output"));
    }
    if (descriptor_ < 0) {
      return CannotOpen(path, errno);
    }
    struct stat info = {};
    if (fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
      return absl::FailedPreconditionError(absl::StrCat(
          path,
          " is not a regular file, which is needed here; write to another "
          "--output"));
    }
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      made_ = false;
      return absl::AbortedError(
          absl::StrCat(path,
                       " is being written by another run; wait for it, or name "
                       "another file"));
    }
    // A file system without locks has none to hold. One who made the file and
    // wrote nothing may have taken it away meanwhile.
    if (Names(path, descriptor_)) return absl::OkStatus();
    close(descriptor_);
  }
}

absl::Status ReplaceFile(const std::string& path, absl::string_view bytes) {
  std::error_code none;
  const bool is_file = !std::filesystem::exists(path, none) ||
                       std::filesystem::is_regular_file(path, none);
  OutputLock lock;
  if (is_file) {
    const absl::Status taken = lock.Take(path);
    if (!taken.ok()) return taken;
  }
  const int descriptor =
      open(path.c_str(), (is_file ? O_RDWR : O_WRONLY) | O_CLOEXEC);
  if (descriptor < 0) return CannotOpen(path, errno);
  int error = is_file ? Overwrite(path, descriptor, bytes)
                      : WriteAll(descriptor, bytes);
  // A file system over a network may tell of a full disk only here.
  if (close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
  return error == 0 ? absl::OkStatus() : CannotWrite(path, error);
}

}  // namespace encoderd::ctl
