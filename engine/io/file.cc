#include "engine/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace encoderd {
namespace {

// The path with every link and dot resolved; nullopt with errno set.
std::optional<std::string> RealPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(
      ::realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return std::nullopt;
  return std::string(real.get());
}

bool IsInside(const std::string& path, const std::string& folder) {
  return folder == "/" || absl::StartsWith(path, absl::StrCat(folder, "/"));
}

// models--X/blobs for models--X/snapshots/REV and folders in it; nullopt
// elsewhere.
std::optional<std::string> CacheBlobs(const std::string& real_folder) {
  const size_t snapshots = real_folder.rfind("/snapshots/");
  if (snapshots == std::string::npos) return std::nullopt;
  const std::string repository = real_folder.substr(0, snapshots);
  if (!absl::StartsWith(repository.substr(repository.rfind('/') + 1),
                        "models--")) {
    return std::nullopt;
  }
  return absl::StrCat(repository, "/blobs");
}

bool IsPlainRelativeName(absl::string_view name) {
  if (name.empty() || name[0] == '/' ||
      name.find('\0') != absl::string_view::npos) {
    return false;
  }
  for (absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "..") return false;
  }
  return true;
}

absl::Status Refused(absl::string_view name, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("file ", Quote(name), " ", why));
}

absl::Status CheckName(const Folder& folder, absl::string_view name) {
  if (IsPlainRelativeName(name) &&
      (folder.subfolder.empty() || IsPlainRelativeName(folder.subfolder))) {
    return absl::OkStatus();
  }
  return Refused(name, "is not a name inside its folder");
}

absl::Status OpenFailed(const Folder& folder, absl::string_view name,
                        int error) {
  if (error == EACCES) {
    return AccessError(absl::StrCat("file ", Quote(name)), folder.path);
  }
  if (error == ENOENT) {
    std::error_code none;
    const std::string target = std::filesystem::read_symlink(
                                   absl::StrCat(folder.Full(), "/", name), none)
                                   .string();
    return absl::NotFoundError(
        absl::StrCat("no file ", Quote(name),
                     none ? ""
                          : absl::StrCat("; it is a link to ", Quote(target),
                                         ", which does not exist")));
  }
  return FileError(
      error,
      absl::StrCat("file ", Quote(name),
                   " cannot be opened: ", std::strerror(error),
                   error == EMFILE ? "; raise the limit (ulimit -n)" : ""));
}

// Whether it is what Git puts in place of a large file without Git LFS.
absl::StatusOr<bool> IsLfsPointer(const File& file) {
  constexpr absl::string_view kStart = "version https://git-lfs.github.com/";
  constexpr int64_t kLongest = 1024;
  if (file.size() < static_cast<int64_t>(kStart.size()) ||
      file.size() > kLongest) {
    return false;
  }
  char start[kStart.size()];
  const absl::Status status = file.ReadAt(0, start, kStart.size());
  if (!status.ok()) return status;
  return absl::string_view(start, kStart.size()) == kStart;
}

absl::StatusOr<std::string> ResolveInside(const Folder& folder,
                                          absl::string_view name) {
  const absl::Status named = CheckName(folder, name);
  if (!named.ok()) return named;
  const std::optional<std::string> real_folder = RealPath(folder.path);
  if (!real_folder.has_value()) {
    return FolderError(folder.path, errno);
  }
  const std::optional<std::string> real = RealPath(
      absl::StrCat(Folder(*real_folder, folder.subfolder).Full(), "/", name));
  if (!real.has_value()) return OpenFailed(folder, name, errno);
  const std::optional<std::string> blobs = CacheBlobs(*real_folder);
  if (IsInside(*real, *real_folder) ||
      (blobs.has_value() && IsInside(*real, *blobs))) {
    return *real;
  }
  return Refused(
      name, "leads out of its folder: put the file itself into the folder");
}

}  // namespace

Folder::Folder(const char* path) : Folder(std::string(path)) {}

Folder::Folder(std::string path, std::string subfolder)
    : path(std::move(path)), subfolder(std::move(subfolder)) {}

std::string Folder::Full() const {
  return subfolder.empty() ? path : absl::StrCat(path, "/", subfolder);
}

absl::StatusOr<File> File::Open(const Folder& folder, absl::string_view name,
                                int64_t max_bytes) {
  const absl::StatusOr<std::string> path = ResolveInside(folder, name);
  if (!path.ok()) return path.status();
  // O_NONBLOCK: a FIFO must not hang here; a regular file does not mind.
  const int fd =
      ::open(path->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return OpenFailed(folder, name, errno);
  File file(fd, std::string(name), 0);
  struct stat info;
  if (::fstat(fd, &info) != 0) return OpenFailed(folder, name, errno);
  if (!S_ISREG(info.st_mode)) return Refused(name, "is not a regular file");
  file.size_ = info.st_size;
  if (file.size_ == 0) return Refused(name, "is empty");
  const absl::StatusOr<bool> pointer = IsLfsPointer(file);
  if (!pointer.ok()) return pointer.status();
  if (*pointer) {
    return Refused(name,
                   "is a Git LFS pointer, not the file itself: run git "
                   "lfs pull in its folder");
  }
  if (file.size_ > max_bytes) {
    return Refused(name, absl::StrCat("has ", file.size_, " bytes; at most ",
                                      max_bytes, " are read"));
  }
  return file;
}

File::File(int fd, std::string name, int64_t size)
    : fd_(fd), name_(std::move(name)), size_(size) {}

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      name_(std::move(other.name_)),
      size_(other.size_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(name_, other.name_);
  std::swap(size_, other.size_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status File::ReadAt(int64_t offset, void* out, int64_t count) const {
  char* to = static_cast<char*>(out);
  while (count > 0) {
    const ssize_t got = ::pread(fd_, to, static_cast<size_t>(count),
                                static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      return FileError(
          error, absl::StrCat("file ", Quote(name_), " cannot be read at byte ",
                              offset, ": ", std::strerror(error)));
    }
    if (got == 0) {
      return Refused(name_, absl::StrCat("ends at byte ", offset, "; ", count,
                                         " more are needed (it had ", size_,
                                         " when it was opened)"));
    }
    to += got;
    offset += got;
    count -= got;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadWholeFile(const Folder& folder,
                                          absl::string_view name,
                                          int64_t max_bytes) {
  const absl::StatusOr<File> file = File::Open(folder, name, max_bytes);
  if (!file.ok()) return file.status();
  std::string content(static_cast<size_t>(file->size()), '\0');
  const absl::Status read = file->ReadAt(0, content.data(), file->size());
  if (!read.ok()) return read;
  return content;
}

absl::StatusOr<bool> FileExists(const Folder& folder, absl::string_view name) {
  const absl::Status named = CheckName(folder, name);
  if (!named.ok()) return named;
  struct stat info;
  if (::lstat(absl::StrCat(folder.Full(), "/", name).c_str(), &info) == 0)
    return true;
  const int error = errno;
  if (error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG) {
    return false;
  }
  return OpenFailed(folder, name, error);
}

absl::Status FolderError(const std::string& folder, int error) {
  if (error == EACCES) {
    return AccessError(absl::StrCat("folder ", Quote(folder)), folder);
  }
  const absl::StatusCode code =
      FileError(error, "", absl::StatusCode::kNotFound).code();
  const bool none = code == absl::StatusCode::kNotFound;
  return absl::Status(
      code,
      absl::StrCat(none ? "no " : "", "folder ", Quote(folder),
                   none ? "" : " cannot be read", ": ", std::strerror(error)));
}

absl::Status AccessError(absl::string_view what, const std::string& folder) {
  return absl::PermissionDeniedError(absl::StrCat(
      what, " cannot be read by user ", ::geteuid(), ": ",
      std::strerror(EACCES), "; give that user access: run `setfacl -R -m u:",
      ::geteuid(), ":rX ", folder, "`, and `setfacl -m u:", ::geteuid(),
      ":x` on the folders above it"));
}

std::string Quote(absl::string_view text) {
  constexpr size_t kLongest = 80;
  const std::string escaped =
      absl::Utf8SafeCHexEscape(text.substr(0, kLongest));
  return absl::StrCat("'", escaped, text.size() > kLongest ? "..." : "", "'");
}

}  // namespace encoderd
