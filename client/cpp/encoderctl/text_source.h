// The texts of one command: its arguments, or a file or standard input with a
// text, or JSON with a text, on each line, or a CSV or JSON file with one in
// each record (record_reader.h). Reads as it goes: a file of any size takes the
// memory of one line or record. Not thread-safe.
//
// Of lines, the text with index i is that of line i + 1. So an empty line
// before another is a text too, and the server refuses it; a line of blanks is
// a text that it takes. Of JSON lines, a blank one before another is refused
// here. Empty lines at the end, of JSON lines blank ones, are no texts. Of
// records, it is that of row or element i + 1; a CSV's header does not count.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_TEXT_SOURCE_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_TEXT_SOURCE_H_

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/encoderctl/input_kind.h"
#include "client/cpp/encoderctl/line_reader.h"
#include "client/cpp/encoderctl/record_reader.h"

namespace encoderd::ctl {

// Where texts come from.
struct TextInput {
  std::vector<std::string> arguments;  // texts, unchanged; or
  std::string file = "-";              // -: standard_input
  std::istream* standard_input = nullptr;
  int descriptor = -1;  // of standard input; -1: it never blocks
  InputFormat format = InputFormat::kAuto;  // by the file's name, else lines
  std::string field = "text";  // of a JSON object; the column of a CSV
  bool field_given = false;    // refused where texts have no fields
  // Told once if lines, which nothing asked for, look like JSON or a table, of
  // the first row of a CSV that spans lines, and of the first line or row with
  // a CR inside. Null: nobody.
  std::function<void(absl::string_view)> note;
};

class TextSource {
 public:
  // INVALID_ARGUMENT if both arguments and a file are given, or a field of
  // texts without fields, for a file whose
  // name says that it cannot be read as text, or, of a CSV, if its header,
  // which is read here, lacks the field. The file's own error if it cannot be
  // opened.
  static absl::StatusOr<std::unique_ptr<TextSource>> Open(TextInput input);

  // See LineReader.
  void StopWhen(std::function<bool()> stop);

  // The next text; false at the end. A line that gives none sets *refused to
  // INVALID_ARGUMENT with its input_index, and the next call continues after
  // it. INVALID_ARGUMENT if nothing that follows can be read, DATA_LOSS if
  // reading fails, CANCELLED if it was stopped.
  absl::StatusOr<bool> Next(std::string* text, absl::Status* refused);

  // Whether Next would not wait: for a pipe that is silent, or a terminal.
  bool Ready();

  // What a person calls the text with this index: "big.txt:12", "big.csv: row
  // 12", "argument 3".
  std::string NameOf(int64_t index) const;

  int64_t texts_read() const { return texts_read_; }
  // About which share of the input `texts` of those read are, 0 to 1; negative
  // where the end is not known.
  double Share(int64_t texts) const;

 private:
  TextSource(TextInput input, std::string name)
      : input_(std::move(input)), name_(std::move(name)) {}

  absl::StatusOr<bool> NextLine(std::string* text, absl::Status* refused);
  // Reads a line into held_line_, or counts it as a blank one. Sets giving_
  // once it is known what the next text is, or that there is none.
  void LookAhead();
  // Whether it is no text where only such lines follow. Of plain lines, an
  // empty one: blanks are a text.
  bool IsBlank(absl::string_view line) const;
  absl::StatusOr<bool> NextRecord(std::string* text, absl::Status* refused);
  // Once: refuses what is no text by its first bytes, whatever its name.
  absl::Status CheckBeginning();
  // INVALID_ARGUMENT if all of the input is one line, of several ended by CR.
  absl::Status CheckLineEnds() const;
  void NoteFormat(absl::string_view line) const;
  // Of the text being read, unless *noted, which it sets.
  void NoteFirst(absl::string_view with, bool* noted);
  void NoteLineBreak();
  void NoteReturn();
  absl::Status Refuse(absl::string_view words) const;
  absl::Status RefuseLength(int64_t length) const;
  // A tokenizer would drop it. Of JSON it is written, as \u0000, and meant.
  absl::Status RefuseNul(absl::string_view text) const;

  const TextInput input_;
  const std::string name_;  // of the file
  bool json_ = false;
  bool checked_ = false;
  bool guessed_lines_ = false;             // neither a flag nor a name says so
  std::unique_ptr<LineReader> lines_;      // null: arguments
  std::unique_ptr<RecordReader> records_;  // null: no CSV, no JSON array
  int64_t texts_read_ = 0;
  bool line_break_noted_ = false;
  bool return_noted_ = false;

  // What NextLine read ahead, up to a line that is not blank.
  int64_t blank_lines_ = 0;
  bool giving_ = false;  // what was read ahead is given, text by text
  absl::StatusOr<bool> more_ = true;  // else nothing follows, or an error
  std::string held_line_;
  int64_t held_length_ = 0;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_TEXT_SOURCE_H_
