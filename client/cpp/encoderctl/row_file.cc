#include "client/cpp/encoderctl/row_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/npy.h"

namespace encoderd::ctl {

OutputLock::~OutputLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status OutputLock::Take(const std::string& path) {
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot open ", path, " for writing"));
  }
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
    return absl::OkStatus();  // a file system without locks has none to hold
  }
  return absl::AbortedError(
      absl::StrCat(path, " is being written by another run"));
}

bool RowFile::Holds(const std::string& path, const RowLayout& layout,
                    int64_t rows) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return !error && static_cast<int64_t>(size) >=
                       kNpyHeaderBytes + rows * layout.row_bytes();
}

absl::StatusOr<std::unique_ptr<RowFile>> RowFile::Open(const std::string& path,
                                                       const RowLayout& layout,
                                                       int64_t rows) {
  std::unique_ptr<RowFile> file(new RowFile(path, layout, rows));
  constexpr auto kBoth = std::ios::binary | std::ios::in | std::ios::out;
  if (rows > 0) {
    std::error_code error;
    std::filesystem::resize_file(
        path, kNpyHeaderBytes + rows * layout.row_bytes(), error);
    file->file_.open(path, kBoth);
    file->file_.seekp(0, std::ios::end);
    if (error || !file->file_) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot open ", path, " to go on writing"));
    }
    return file;
  }
  file->file_.open(path, kBoth | std::ios::trunc);
  if (!file->file_) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot open ", path, " for writing"));
  }
  const absl::Status status = file->WriteHead();
  if (!status.ok()) return status;
  return file;
}

absl::Status RowFile::Check() const {
  if (file_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("cannot write to ", path_));
}

absl::Status RowFile::Append(absl::string_view rows) {
  file_.write(rows.data(), static_cast<std::streamsize>(rows.size()));
  rows_ += static_cast<int64_t>(rows.size()) / layout_.row_bytes();
  return Check();
}

absl::Status RowFile::Flush() {
  file_.flush();
  return Check();
}

absl::Status RowFile::WriteHead() {
  file_.seekp(0);
  file_ << NpyHeader(rows_, layout_.columns, layout_.descr);
  file_.seekp(0, std::ios::end);
  return Flush();
}

}  // namespace encoderd::ctl
