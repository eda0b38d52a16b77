// The texts of one command: its arguments, or a file or standard input with a
// text, or JSON with a text, on each line, or a CSV or JSON file with one in
// each record (record_reader.h). Reads as it goes: a file of any size takes the
// memory of one line or record. Not thread-safe.
//
// Of lines, the text with index i is that of line i + 1. So an empty line is a
// text too, and the server refuses it. Of JSON lines, a blank one before
// another is refused here; those at the end are no texts. Of records, it is
// that of row or element i + 1; a CSV's header does not count.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_TEXT_SOURCE_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_TEXT_SOURCE_H_

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/encoderctl/line_reader.h"
#include "client/cpp/encoderctl/record_reader.h"

namespace encoderd::ctl {

// Where texts come from.
struct TextInput {
  std::vector<std::string> arguments;  // texts, unchanged; or
  std::string file = "-";              // -: standard_input
  std::istream* standard_input = nullptr;
  int descriptor = -1;  // of standard input; -1: it never blocks
  // lines, jsonl, csv or json; auto: by the file's name, else lines.
  std::string format = "auto";
  std::string field = "text";  // of a JSON object; the column of a CSV
};

class TextSource {
 public:
  // Blank lines of a .jsonl that are looked past for one that is not. More of
  // them are refused, be they at the end.
  static constexpr size_t kMostBlankLines = 1 << 16;

  // INVALID_ARGUMENT if both arguments and a file are given, for a file whose
  // name says that it cannot be read as text, or, of a CSV, if its header,
  // which is read here, lacks the field. The file's own error if it cannot be
  // opened.
  static absl::StatusOr<std::unique_ptr<TextSource>> Open(TextInput input);

  // See LineReader.
  void StopWhen(std::function<bool()> stop);

  // The next text; false at the end. A line that gives none sets *refused to
  // INVALID_ARGUMENT with its input_index, and the next call goes on behind it.
  // INVALID_ARGUMENT if nothing that follows can be read, DATA_LOSS if reading
  // fails, CANCELLED if it was stopped.
  absl::StatusOr<bool> Next(std::string* text, absl::Status* refused);

  // What a person calls the text with this index: "big.txt:12", "big.csv: row
  // 12", "argument 3".
  std::string NameOf(int64_t index) const;

  int64_t texts_read() const { return texts_read_; }
  // The share that was read, 0 to 1; negative where the end is not known.
  double Progress() const;

 private:
  TextSource(TextInput input, std::string name)
      : input_(std::move(input)), name_(std::move(name)) {}

  absl::StatusOr<bool> NextLine(std::string* text, absl::Status* refused);
  absl::StatusOr<bool> NextJson(std::string* text, absl::Status* refused);
  absl::StatusOr<bool> NextRecord(std::string* text, absl::Status* refused);
  absl::Status Refuse(absl::string_view words) const;
  absl::Status RefuseLength(int64_t length) const;

  const TextInput input_;
  const std::string name_;  // of the file
  bool json_ = false;
  std::unique_ptr<LineReader> lines_;      // null: arguments
  std::unique_ptr<RecordReader> records_;  // null: no CSV, no JSON array
  int64_t texts_read_ = 0;

  // What NextJson read ahead, up to a line that is not blank.
  size_t blank_lines_ = 0;
  bool giving_ = false;  // the blank ones are refused, one by one
  bool held_ = false;    // a line that is not blank follows them
  std::string held_line_;
  int64_t held_length_ = 0;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_TEXT_SOURCE_H_
