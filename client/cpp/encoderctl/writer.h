// Where results go: text, JSON lines or .npy, to a file or standard output.
// Written as they come, text and lines through a small buffer. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_WRITER_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_WRITER_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cpp/encoderctl/invocation.h"
#include "client/cpp/encoderctl/output_file.h"
#include "client/cpp/encoderctl/output_format.h"
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
  // Notes each kind of which there were any.
  void Tell(const Invocation& invocation) const;

 private:
  int64_t truncated_ = 0;
  int64_t windowed_ = 0;
};

class Writer {
 public:
  // Bytes to `file` ("-": the environment's output), whose content stays until
  // there is something to put in its place. An `npy` is a file. NOT_FOUND if it
  // cannot be opened, ABORTED while another run writes this file,
  // FAILED_PRECONDITION where it holds unfinished rows.
  static absl::StatusOr<std::unique_ptr<Writer>> Open(
      const std::string& file, bool npy, const Environment& environment);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // The bytes of one text, or of a whole report. DATA_LOSS if the bytes cannot
  // be written (disk full), CANCELLED if a signal came (StopOnSignal) while
  // nobody read them; so all that follow, and nothing more is tried.
  absl::Status Write(absl::string_view bytes);
  // Hands what was written to the system. Errors as of Write.
  absl::Status Flush();
  // Appends rows to an .npy, and counts them in its head: whatever ends this
  // process, they are there. All rows have the same number of columns.
  absl::Status WriteRows(absl::Span<const float> values, int64_t rows,
                         int64_t columns);
  // Ends the output; the last call. Call it also after an error of the work,
  // with `done` false: what was written stays, and where nothing was, what
  // stood there before.
  absl::Status Finish(bool done = true);

  // Texts that the system has whole, and whether a part of another follows.
  int64_t whole() const { return whole_; }
  bool cut() const { return cut_; }

 private:
  Writer(std::string name, bool npy) : name_(std::move(name)), npy_(npy) {}
  // How many bytes of buffer_ went out; fewer than all set errno, to EINTR if a
  // signal came while nobody read.
  size_t Put() const;

  // Drops the content of an earlier run, once.
  absl::Status Begin();
  absl::Status BeginRows(int64_t columns);

  const std::string name_;
  const bool npy_;
  int descriptor_ = -1;          // what is written to; -1: out_
  std::ostream* out_ = nullptr;  // standard output; null: descriptor_ is ours
  bool is_file_ = false;         // and of a regular file
  bool begun_ = false;
  std::string buffer_;
  std::vector<size_t> ends_;  // of the writes in buffer_
  absl::Status lost_;         // why nothing can be written any more
  int64_t whole_ = 0;
  bool cut_ = false;
  OutputLock lock_;                // of a file
  std::unique_ptr<RowFile> rows_;  // null: none yet
  int64_t columns_ = 0;
};

// One text's vectors in `format`. text: a line of values a row (and an empty
// line after each text if it has many rows). jsonl: one object a text: index,
// token_count, truncated, and "windows" and "embedding", or "rows", "columns"
// and "states".
absl::Status WriteVectors(OutputFormat format, int64_t index, bool states,
                          const VectorResult& result, Writer* writer);

// In the place of a text that has no result. text: an empty line; jsonl: its
// index and the error's code, message and reason; npy: nothing.
absl::Status WriteError(OutputFormat format, int64_t index,
                        const absl::Status& error, Writer* writer);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_WRITER_H_
