// Writing a small file so that readers see the old one or the new one, whole,
// and a lock for those who read one, change it and write it back.
#ifndef ENCODERD_ENGINE_IO_WRITE_FILE_H_
#define ENCODERD_ENGINE_IO_WRITE_FILE_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace encoderd {

// Replaces folder/name by `content`: written next to it, synced, renamed, and
// the folder synced. `folder` is created if missing, but not its parents. Of
// two processes that write at once the later one stays. Errors have the code
// and the word that the system's error has (PERMISSION_DENIED,
// RESOURCE_EXHAUSTED for a full disk, ...); then nothing has changed, unless
// the message says "bring to the disk". `name` is the caller's own and is not
// checked.
absl::Status WriteFileAtomically(const std::string& folder,
                                 const std::string& name,
                                 absl::string_view content);

// Held by one owner alone, among all threads and processes that take it, until
// it is destroyed.
// Thread rule: one thread at a time.
class FileLock {
 public:
  // The longest wait for another owner.
  static constexpr absl::Duration kPatience = absl::Seconds(10);
  using Sleep = std::function<void(absl::Duration)>;

  // Takes the lock folder/name: an empty file, made where it is missing, as its
  // folder is, and left there. UNAVAILABLE: another owner holds it after
  // kPatience of sleep; other errors as of WriteFileAtomically.
  static absl::StatusOr<FileLock> Take(const std::string& folder,
                                       const std::string& name,
                                       const Sleep& sleep = absl::SleepFor);

  FileLock(FileLock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_WRITE_FILE_H_
