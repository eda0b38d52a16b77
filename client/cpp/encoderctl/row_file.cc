#include "client/cpp/encoderctl/row_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/npy.h"
#include "client/cpp/encoderctl/output_file.h"

namespace encoderd::ctl {

bool RowFile::Holds(const std::string& path, const RowLayout& layout,
                    int64_t rows) {
  std::error_code error;
  const auto size = static_cast<int64_t>(
      std::filesystem::file_size(path, error));  // -1 for an error
  return !error && size >= kNpyHeaderBytes &&
         (size - kNpyHeaderBytes) / layout.row_bytes() >= rows;
}

absl::StatusOr<std::unique_ptr<RowFile>> RowFile::Open(const std::string& path,
                                                       const RowLayout& layout,
                                                       int64_t rows) {
  const int descriptor =
      open(path.c_str(),
           O_RDWR | O_CREAT | O_CLOEXEC | (rows > 0 ? 0 : O_TRUNC), 0666);
  if (descriptor < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot open ", path, " for writing"));
  }
  std::unique_ptr<RowFile> file(new RowFile(path, layout, descriptor, rows));
  absl::Status status;
  if (rows > 0 &&
      ftruncate(descriptor, kNpyHeaderBytes + rows * layout.row_bytes()) != 0) {
    status = CannotWrite(path, errno);
  }
  if (rows == 0) status = file->WriteHead();
  if (!status.ok()) return status;
  return file;
}

RowFile::~RowFile() { close(descriptor_); }

absl::Status RowFile::WriteAt(int64_t offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote =
        pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return CannotWrite(path_, wrote < 0 ? errno : 0);
    bytes.remove_prefix(static_cast<size_t>(wrote));
    offset += wrote;
  }
  return absl::OkStatus();
}

absl::Status RowFile::Append(absl::string_view rows) {
  const int64_t row_bytes = layout_.row_bytes();
  const absl::Status status =
      WriteAt(kNpyHeaderBytes + rows_ * row_bytes, rows);
  if (status.ok()) rows_ += static_cast<int64_t>(rows.size()) / row_bytes;
  return status;
}

absl::Status RowFile::WriteHead() {
  return WriteAt(0, NpyHeader(rows_, layout_.columns, layout_.descr));
}

}  // namespace encoderd::ctl
