// Read-only files of a folder: that of a model, or of stored tunings.
//
// A folder's content is not trusted: only regular files are opened (a FIFO
// would hang, a device has side effects), a name cannot lead out of the folder,
// and sizes are capped. Reads are positioned and exact, so that a file which is
// cut while it is being read is a status and never a SIGBUS: nothing is mapped.
//
// Thread rule: a File is constant after Open; ReadAt may run in parallel.
#ifndef ENCODERD_ENGINE_IO_FILE_H_
#define ENCODERD_ENGINE_IO_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/io/file_error.h"

namespace encoderd {

// Where the names of files begin, and where links may lead.
struct Folder {
  Folder(const char* path);  // NOLINT: a path is a folder
  Folder(std::string path, std::string subfolder = "");  // NOLINT: likewise

  std::string Full() const;  // of both

  std::string path;       // links may lead to any place in it
  std::string subfolder;  // of it, where names begin; "": in `path` itself
};

class File {
 public:
  // Opens folder/name. `name` is relative, without "..", as is the subfolder,
  // and after resolving symbolic links the file must be inside folder.path. One
  // other layout is allowed: the Hugging Face cache, where
  // models--X/snapshots/REV/NAME is a link into models--X/blobs.
  // Errors: NOT_FOUND (no such file); PERMISSION_DENIED (see AccessError);
  // RESOURCE_EXHAUSTED (too many open files, no memory); UNAVAILABLE (see
  // FileErrorMayPass); DATA_LOSS (leads out of the folder, not a regular file,
  // empty, a Git LFS pointer, over max_bytes, not readable for any other
  // cause), naming `name`.
  static absl::StatusOr<File> Open(const Folder& folder, absl::string_view name,
                                   int64_t max_bytes);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }  // bytes, when it was opened

  // Exactly `count` bytes from `offset` into `out`; DATA_LOSS if the file ends
  // before that, or the status of FileError.
  absl::Status ReadAt(int64_t offset, void* out, int64_t count) const;

 private:
  File(int fd, std::string name, int64_t size);

  int fd_ = -1;
  std::string name_;
  int64_t size_ = 0;
};

// The whole file.
absl::StatusOr<std::string> ReadWholeFile(const Folder& folder,
                                          absl::string_view name,
                                          int64_t max_bytes);

// Whether folder/name exists, of any type. Errors, if that cannot be seen:
// those of File::Open but NOT_FOUND.
absl::StatusOr<bool> FileExists(const Folder& folder, absl::string_view name);

// What `error`, an errno, says of a folder: AccessError, the code of FileError,
// or NOT_FOUND.
absl::Status FolderError(const std::string& folder, int error);

// PERMISSION_DENIED: this process may not read `what` ("file 'config.json'").
// Names the user and how to make `folder` readable.
absl::Status AccessError(absl::string_view what, const std::string& folder);

// `text` for an error message: escaped, and cut after 80 bytes.
std::string Quote(absl::string_view text);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_FILE_H_
