// An .npy that only grows and is valid at any moment, so that a later run can
// continue it.
// Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_ROW_FILE_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_ROW_FILE_H_

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/encoderctl/output_file.h"
#include "encoderd/v1/encoder.pb.h"

namespace encoderd::ctl {

// How the rows of an .npy lie in it.
struct RowLayout {
  std::string descr;    // "<f4": npy.h
  int64_t columns = 0;  // values of a row; at least 1 where there are rows
  int64_t value_bytes = 0;
  int64_t row_bytes() const { return columns * value_bytes; }
};

// Of vectors of this many values in `encoding`.
RowLayout LayoutOf(v1::Encoding encoding, int64_t dimensions);

// The rows of an .npy one after another, for one who knows that it has them.
class RowStream {
 public:
  RowStream(const std::string& path, const RowLayout& layout);
  // The next row's bytes; if the file cannot be read, that many arbitrary
  // bytes.
  std::string Next();

 private:
  std::ifstream file_;
  const int64_t row_bytes_;
};

class RowFile {
 public:
  // How many rows the head of `path` counts, whether it holds them or not;
  // nullopt if the file does not begin with the head of this layout.
  static std::optional<int64_t> CountIn(const std::string& path,
                                        const RowLayout& layout);
  // How many rows the head of `path` counts; 0 where there is no file, or an
  // empty one. DATA_LOSS if it is no .npy of this layout, or has fewer rows.
  static absl::StatusOr<int64_t> RowsIn(const std::string& path,
                                        const RowLayout& layout);
  // Keeps the first `rows` rows, which it must hold, and drops the rest.
  // NOT_FOUND if the file cannot be opened, or is a symbolic link that is
  // refused.
  static absl::StatusOr<std::unique_ptr<RowFile>> Open(
      const std::string& path, const RowLayout& layout, int64_t rows,
      Links links = Links::kFollow);
  ~RowFile();
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  // Appends whole rows, then counts them in the head, and hands both to the
  // system: they survive this process. DATA_LOSS if they cannot be written
  // (disk full): then none of them counts.
  absl::Status Append(absl::string_view rows);
  // The last call. DATA_LOSS as of Append: a file system over a network may
  // tell of a full disk only here. DATA_LOSS, too, if the file has lost its
  // name meanwhile.
  absl::Status Close();

 private:
  RowFile(std::string path, RowLayout layout, int descriptor, int64_t rows)
      : path_(std::move(path)),
        layout_(std::move(layout)),
        descriptor_(descriptor),
        rows_(rows) {}
  absl::Status WriteAt(int64_t offset, absl::string_view bytes);
  absl::Status WriteHead(int64_t rows);

  const std::string path_;
  const RowLayout layout_;
  int descriptor_;  // -1: closed
  int64_t rows_;
};

// OK if a run may write its own rows of this layout to `path`, next to an
// output: over such rows, an empty file or none. FAILED_PRECONDITION: the path
// and `problem`; the file may be a person's own.
absl::Status CheckSideFile(const std::string& path, const RowLayout& layout,
                           absl::string_view problem);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_ROW_FILE_H_
