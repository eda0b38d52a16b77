// A file that only grows, so that a later run can go on where one broke off:
// an .npy whose rows are appended.
// Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_ROW_FILE_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_ROW_FILE_H_

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd::ctl {

// How the rows of an .npy lie in it.
struct RowLayout {
  std::string descr;    // "<f4": npy.h
  int64_t columns = 0;  // values of a row
  int64_t value_bytes = 0;
  int64_t row_bytes() const { return columns * value_bytes; }
};

// One run at a time writes a file: held by the system, for as long as this
// lives, whatever becomes of the process.
class OutputLock {
 public:
  OutputLock() = default;
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

  // Makes the file if it is not there. INVALID_ARGUMENT if it cannot be
  // opened; ABORTED while another run holds it.
  absl::Status Take(const std::string& path);

 private:
  int descriptor_ = -1;
};

class RowFile {
 public:
  // Whether `path` holds at least `rows` rows.
  static bool Holds(const std::string& path, const RowLayout& layout,
                    int64_t rows);
  // Keeps the first `rows` rows, which it must hold, and drops the rest.
  // INVALID_ARGUMENT if the file cannot be opened.
  static absl::StatusOr<std::unique_ptr<RowFile>> Open(const std::string& path,
                                                       const RowLayout& layout,
                                                       int64_t rows);

  // Appends whole rows. DATA_LOSS if they cannot be written (disk full).
  absl::Status Append(absl::string_view rows);
  // Hands what was appended to the system: it survives this process.
  absl::Status Flush();
  // Writes the shape into the head. More rows may follow.
  absl::Status WriteHead();

 private:
  RowFile(std::string path, RowLayout layout, int64_t rows)
      : path_(std::move(path)), layout_(std::move(layout)), rows_(rows) {}
  absl::Status Check() const;

  const std::string path_;
  const RowLayout layout_;
  int64_t rows_;
  std::fstream file_;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_ROW_FILE_H_
