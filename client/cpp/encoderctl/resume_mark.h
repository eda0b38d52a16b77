// OUT.npy.resume: by what a run into OUT.npy knows the rows that an interrupted
// one left. An .npy [2 + rows, 24] of bytes, written like OUT.npy itself:
//
//   row 0, 1    marks of the model and of the options
//   row 2 + i   once row i of OUT.npy was handed to the system: 16 bytes, the
//               mark of text i, another one if the text was skipped and its
//               row is 0; 8 bytes, the mark of the row's bytes
//
// A mark is the first bytes of a SHA-256. The input is known by the texts that
// were used, not by its time, its name or its whole: a row costs 24 bytes and
// some microseconds, nothing is read before the first row, and a text further
// on may change before the run is resumed. Then the used texts and their rows
// are read once more, as fast as the input can be parsed and SHA-256 computed
// (a million rows of 384 floats: 1.5 GB), which is far from computing them
// again. So rows that another program wrote, or a disk changed, are found.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_RESUME_MARK_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_RESUME_MARK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cpp/encoderctl/row_file.h"
#include "client/cpp/options.h"

namespace encoderd::ctl {

inline constexpr int64_t kTextMarkBytes = 16;
inline constexpr int64_t kRowMarkBytes = 8;
inline const RowLayout kMarkLayout{"|u1", kTextMarkBytes + kRowMarkBytes, 1};
inline constexpr int64_t kWorkMarks = 2;  // of model and options, before texts

// Where the marks of `output` lie, which must be there: next to the file itself
// where `output` is a symbolic link, so that all its names have the same marks.
std::string ResumePathOf(const std::string& output);

// Whether the file begins as marks do. One that does not may be a person's own
// of that name, and is nobody's to write or delete.
bool HoldsMarks(const std::string& path);
// OK if a run may write its marks there: over marks, damaged ones included, an
// empty file or none. FAILED_PRECONDITION names the file that is in the way.
absl::Status CheckMarksFile(const std::string& path);

// The marks of model and options: of all that can change a row.
std::string MarkWork(const v1::Model& model,
                     const client::EmbedOptions& options);

// The mark of a text, or of what was said of a line that gave none.
std::string MarkText(absl::string_view text, const absl::Status& refused);
// The mark that takes its place once the text was skipped.
std::string MarkSkipped(absl::string_view mark);
// The mark of a row's bytes, and of its scale's where it has one.
std::string MarkRow(absl::string_view row, absl::string_view scale);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_RESUME_MARK_H_
