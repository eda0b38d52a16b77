// The output of a bulk run, which a later run of the same work can resume: the
// rows in OUT.npy, their scales where they have some (scales_file.h), and the
// marks of what is done (resume_mark.h). Each file is locked while this lives.
// Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_RESUMABLE_OUTPUT_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_RESUMABLE_OUTPUT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/encoderctl/finished_rows.h"
#include "client/cpp/encoderctl/output_file.h"
#include "client/cpp/encoderctl/row_file.h"
#include "client/cpp/encoderctl/text_source.h"

namespace encoderd::ctl {

// What a run writes.
struct OutputPlan {
  std::string path;  // of the rows
  RowLayout layout;
  bool has_scales = false;
  std::string work;    // MarkWork
  bool skips = false;  // bad texts
};

struct OutputRow {
  std::string text_mark;  // MarkText, or MarkSkipped
  std::string bytes;      // as many as the layout's row_bytes()
  float scale = 0;        // unused where rows have no scales
};

class ResumableOutput {
 public:
  // Makes the files that are not there, and leaves alone what is in the others.
  // `is_input` tells of a path whether it names an input too. INVALID_ARGUMENT
  // if one of the scales or marks does; FAILED_PRECONDITION if two names are
  // one file, or one holds what encoderctl did not write; the errors of
  // OutputLock::Take.
  static absl::StatusOr<std::unique_ptr<ResumableOutput>> Open(
      OutputPlan plan,
      absl::FunctionRef<bool(const std::string& path)> is_input);

  // Counts the rows of an interrupted run of the same work as done, and skips
  // their texts in `source`; what is appended follows them.
  // The errors of FindFinishedRows. Call it before Begin.
  absl::StatusOr<FinishedRows> Resume(TextSource* source);

  // Drops all but the rows that are done from the files. NOT_FOUND if one
  // cannot be opened, DATA_LOSS if it cannot be written.
  absl::Status Begin();

  // Hands rows to the system; calls Begin first where nobody did.
  // DATA_LOSS if one of the files cannot be written (disk full): then done()
  // does not count them.
  absl::Status Append(const std::vector<OutputRow>& rows);

  // The last call, of a run that is complete: nothing is left to resume.
  // DATA_LOSS as of RowFile::Close. Without it the marks stay.
  absl::Status Close();

  // Rows that are in the output, those of earlier runs included.
  int64_t done() const { return done_; }
  // Whether the output was there before.
  bool found() const { return lock_.found(); }
  // Whether there is not one byte in it.
  bool empty() const;
  // Whether Begin succeeded; until then the output is left as it was.
  bool begun() const { return rows_ != nullptr; }

 private:
  explicit ResumableOutput(OutputPlan plan) : plan_(std::move(plan)) {}
  absl::Status TakeFiles(
      absl::FunctionRef<bool(const std::string& path)> is_input);

  const OutputPlan plan_;
  OutputLock lock_;
  OutputLock marks_lock_;
  OutputLock scales_lock_;
  std::string marks_path_;
  std::string scales_path_;
  std::unique_ptr<RowFile> rows_;    // null: not begun
  std::unique_ptr<RowFile> scales_;  // null: nor this, or there are none
  std::unique_ptr<RowFile> marks_;   // null: nor this
  int64_t done_ = 0;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_RESUMABLE_OUTPUT_H_
