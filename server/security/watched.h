// Files, and what was last read from them: files that are replaced while the
// server runs are reloaded, and invalid ones change nothing.
#ifndef ENCODERD_SERVER_SECURITY_WATCHED_H_
#define ENCODERD_SERVER_SECURITY_WATCHED_H_

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace encoderd {

// The file that a path leads to, and its last change.
struct FileMark {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = -1;  // -1: no such file
  int64_t changed_ns = 0;

  bool operator==(const FileMark& other) const;
};

// When to read files that may be replaced one after the other: once they have
// changed and then look the same at two checks. Not thread-safe.
class ChangeRule {
 public:
  explicit ChangeRule(std::vector<std::string> paths);

  // True: read them now. Call it at regular intervals.
  bool Look();
  // Call it when they are read now, whatever the rule says.
  void Taken() { taken_ = last_ = Marks(); }

 private:
  std::vector<FileMark> Marks() const;

  const std::vector<std::string> paths_;
  std::vector<FileMark> taken_;  // what was read, or tried, last
  std::vector<FileMark> last_;   // at the last look
};

// The log line about reloaded files and their content.
void LogReload(absl::string_view what, const absl::Status& status,
               const std::string& holds);

// Results of reloads since the process started.
struct ReloadFigures {
  int64_t good = 0;
  int64_t failed = 0;
  bool failing = false;  // the version in use differs from the files
};

// What was read from some files last; `T` has a Describe for the log.
// Thread-safe; one thread reads at a time.
template <typename T>
class Watched {
 public:
  // before: what was read last, null at first.
  using Read =
      std::function<absl::StatusOr<std::shared_ptr<const T>>(const T* before)>;

  // `what`: for the log.
  Watched(std::string what, std::vector<std::string> paths, Read read)
      : what_(std::move(what)),
        read_(std::move(read)),
        rule_(std::move(paths)) {}

  // The first read. If it is OK, the value exists from then on.
  absl::Status Open() {
    absl::MutexLock lock(&reading_);
    auto value = read_(nullptr);
    if (!value.ok()) return value.status();
    absl::MutexLock set(&mu_);
    value_ = *std::move(value);
    return absl::OkStatus();
  }
  // Reloads replaced files, and occasionally retries files that could not be
  // read: descriptors may have run out, or a certificate may be valid by now.
  // Call it at regular intervals.
  void Look() {
    absl::MutexLock lock(&reading_);
    const bool retry = figures().failing && ++looks_ >= kLooksUntilRetry;
    if (rule_.Look() || retry) Again();
  }
  // Reloads, replaced or not.
  void Reload() {
    absl::MutexLock lock(&reading_);
    rule_.Taken();
    last_error_ = absl::OkStatus();  // whoever asks is told again
    Again();
  }

  std::shared_ptr<const T> value() const {
    absl::MutexLock lock(&mu_);
    return value_;
  }
  ReloadFigures figures() const {
    absl::MutexLock lock(&mu_);
    return figures_;
  }

 private:
  static constexpr int kLooksUntilRetry = 60;

  // Logs the same error once.
  void Again() ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_) {
    looks_ = 0;
    absl::StatusOr<std::shared_ptr<const T>> value = absl::UnknownError("");
    try {
      value = read_(this->value().get());
    } catch (const std::bad_alloc&) {
      value = absl::ResourceExhaustedError("out of memory");
    }
    if (value.ok() || value.status() != last_error_) {
      LogReload(what_, value.status(), value.ok() ? Describe(**value) : "");
    }
    last_error_ = value.status();
    absl::MutexLock lock(&mu_);
    figures_.failing = !value.ok();
    ++(value.ok() ? figures_.good : figures_.failed);
    if (value.ok()) value_ = *std::move(value);
  }

  const std::string what_;
  const Read read_;
  absl::Mutex reading_ ABSL_ACQUIRED_BEFORE(mu_);
  ChangeRule rule_ ABSL_GUARDED_BY(reading_);
  int looks_ ABSL_GUARDED_BY(reading_) = 0;  // since the last reading
  absl::Status last_error_ ABSL_GUARDED_BY(reading_);
  mutable absl::Mutex mu_;
  std::shared_ptr<const T> value_ ABSL_GUARDED_BY(mu_);
  ReloadFigures figures_ ABSL_GUARDED_BY(mu_);
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_SECURITY_WATCHED_H_
