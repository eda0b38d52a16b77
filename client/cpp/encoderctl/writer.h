// Where results go: text, JSON lines or .npy, to a file or standard output.
// Written as they come; nothing is kept. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_WRITER_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_WRITER_H_

#include <cstdint>
#include <fstream>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cpp/encoderctl/output_file.h"
#include "client/cpp/encoderctl/row_file.h"

namespace encoderd::ctl {

// Vectors [rows, columns] of one text, and what is known of it.
struct VectorResult {
  absl::Span<const float> values;
  int64_t rows = 1;  // 1: one vector for the text
  int64_t columns = 0;
  uint32_t token_count = 0;
  bool truncated = false;
  uint32_t windows = 0;  // averaged; 0: the text fitted
};

// A count of texts that did not fit, for the person who asked to take them all
// the same.
class LongTexts {
 public:
  void Count(bool truncated, uint32_t windows) {
    if (truncated) ++truncated_;
    if (windows > 0) ++windowed_;
  }
  // Writes a line for each kind of which there were any.
  void Tell(std::ostream& err) const;

 private:
  int64_t truncated_ = 0;
  int64_t windowed_ = 0;
};

class Writer {
 public:
  // Bytes to `file` ("-": `standard_output`), whose content stays until there
  // is something to put in its place. NOT_FOUND if it cannot be opened;
  // INVALID_ARGUMENT if `npy` and it is not a file: the shape of an .npy is
  // written into its head. ABORTED while another run writes this file,
  // FAILED_PRECONDITION where it holds unfinished rows.
  static absl::StatusOr<std::unique_ptr<Writer>> Open(
      const std::string& file, bool npy, std::ostream& standard_output);

  // DATA_LOSS if the bytes cannot be written (disk full).
  absl::Status Write(absl::string_view bytes);
  // Appends rows to an .npy, and counts them in its head: whatever ends this
  // process, they are there. All rows have the same number of columns.
  absl::Status WriteRows(absl::Span<const float> values, int64_t rows,
                         int64_t columns);
  // Ends the output. Call it also after an error of the work, with `done`
  // false: what was written stays, and where nothing was, what stood there
  // before.
  absl::Status Finish(bool done = true);

 private:
  Writer(std::string name, bool npy) : name_(std::move(name)), npy_(npy) {}

  // Drops the content of an earlier run, once.
  absl::Status Begin();
  absl::Status BeginRows(int64_t columns);

  const std::string name_;
  const bool npy_;
  std::ofstream file_;
  std::ostream* out_ = nullptr;
  bool begun_ = false;
  OutputLock lock_;                // of a file
  std::unique_ptr<RowFile> rows_;  // null: none yet
  int64_t columns_ = 0;
};

// One text's vectors in `format`. text: a line of values a row (and an empty
// line after each text if it has many rows). jsonl: one object a text: index,
// token_count, truncated, and "windows" and "embedding", or "rows", "columns"
// and "states".
absl::Status WriteVectors(absl::string_view format, int64_t index, bool states,
                          const VectorResult& result, Writer* writer);

// In the place of a text that has no result. text: an empty line; jsonl: its
// index and the error's code, message and reason; npy: nothing.
absl::Status WriteError(absl::string_view format, int64_t index,
                        const absl::Status& error, Writer* writer);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_WRITER_H_
