#include "client/cpp/encoderctl/row_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/npy.h"
#include "client/cpp/encoderctl/output_file.h"

namespace encoderd::ctl {

RowLayout LayoutOf(v1::Encoding encoding, int64_t dimensions) {
  switch (encoding) {
    case v1::ENCODING_FLOAT16:
      return {"<f2", dimensions, 2};
    case v1::ENCODING_INT8:
      return {"|i1", dimensions, 1};
    case v1::ENCODING_UINT8:
      return {"|u1", dimensions, 1};
    case v1::ENCODING_BINARY:
      return {"|i1", (dimensions + 7) / 8, 1};
    case v1::ENCODING_UBINARY:
      return {"|u1", (dimensions + 7) / 8, 1};
    default:  // FLOAT32, which UNSPECIFIED means too
      return {"<f4", dimensions, 4};
  }
}

RowStream::RowStream(const std::string& path, const RowLayout& layout)
    : file_(path, std::ios::binary), row_bytes_(layout.row_bytes()) {
  file_.seekg(kNpyHeaderBytes);
}

std::string RowStream::Next() {
  std::string row(static_cast<size_t>(row_bytes_), '\0');
  file_.read(row.data(), static_cast<std::streamsize>(row.size()));
  return row;
}

std::optional<int64_t> RowFile::CountIn(const std::string& path,
                                        const RowLayout& layout) {
  std::string head(kNpyHeaderBytes, '\0');
  std::ifstream(path, std::ios::binary).read(head.data(), kNpyHeaderBytes);
  constexpr char kShape[] = "'shape': (";
  const size_t shape = head.find(kShape);
  int64_t rows = -1;
  if (shape != std::string::npos) {
    std::from_chars(head.data() + shape + sizeof(kShape) - 1,
                    head.data() + head.size(), rows);
  }
  if (rows < 0 || head != NpyHeader(rows, layout.columns, layout.descr)) {
    return std::nullopt;
  }
  return rows;
}

absl::StatusOr<int64_t> RowFile::RowsIn(const std::string& path,
                                        const RowLayout& layout) {
  std::error_code error;
  const auto size = static_cast<int64_t>(
      std::filesystem::file_size(path, error));  // -1 for an error
  if (size <= 0) return 0;
  const std::optional<int64_t> rows = CountIn(path, layout);
  if (!rows.has_value() ||
      (size - kNpyHeaderBytes) / layout.row_bytes() < *rows) {
    return absl::DataLossError(
        absl::StrCat(path, " is damaged, or not what encoderctl wrote there"));
  }
  return *rows;
}

absl::StatusOr<std::unique_ptr<RowFile>> RowFile::Open(const std::string& path,
                                                       const RowLayout& layout,
                                                       int64_t rows,
                                                       Links links) {
  const int descriptor =
      open(path.c_str(),
           O_RDWR | O_CREAT | O_CLOEXEC | (rows > 0 ? 0 : O_TRUNC) |
               (links == Links::kRefuse ? O_NOFOLLOW : 0),
           0666);
  if (descriptor < 0) return CannotOpen(path, errno);
  std::unique_ptr<RowFile> file(new RowFile(path, layout, descriptor, rows));
  absl::Status status = file->WriteHead(rows);
  if (rows > 0 &&
      ftruncate(descriptor, kNpyHeaderBytes + rows * layout.row_bytes()) != 0) {
    status = CannotWrite(path, errno);
  }
  if (!status.ok()) return status;
  return file;
}

RowFile::~RowFile() { Close().IgnoreError(); }

absl::Status RowFile::Close() {
  if (descriptor_ < 0) return absl::OkStatus();
  const bool named = Names(path_, descriptor_);
  const int closed = close(descriptor_);
  descriptor_ = -1;
  if (!named) {
    return absl::DataLossError(absl::StrCat(
        path_, " was removed or replaced while it was written; start again"));
  }
  // Interrupted, it is closed all the same.
  if (closed == 0 || errno == EINTR) return absl::OkStatus();
  return CannotWrite(path_, errno);
}

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
  const int64_t all = rows_ + static_cast<int64_t>(rows.size()) / row_bytes;
  absl::Status status = WriteAt(kNpyHeaderBytes + rows_ * row_bytes, rows);
  if (status.ok()) status = WriteHead(all);
  if (status.ok()) rows_ = all;
  return status;
}

absl::Status RowFile::WriteHead(int64_t rows) {
  return WriteAt(0, NpyHeader(rows, layout_.columns, layout_.descr));
}

absl::Status CheckSideFile(const std::string& path, const RowLayout& layout,
                           absl::string_view problem) {
  std::error_code none;
  const auto size = std::filesystem::file_size(path, none);
  if (none || size == 0 || RowFile::CountIn(path, layout).has_value()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(path, problem));
}

}  // namespace encoderd::ctl
