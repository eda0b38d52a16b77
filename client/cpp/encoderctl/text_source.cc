#include "client/cpp/encoderctl/text_source.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/csv_reader.h"
#include "client/cpp/encoderctl/json_array_reader.h"
#include "client/cpp/encoderctl/json_text.h"
#include "client/cpp/error.h"

namespace encoderd::ctl {

absl::StatusOr<std::unique_ptr<TextSource>> TextSource::Open(TextInput input) {
  const bool has_arguments = !input.arguments.empty();
  const bool has_file = input.file != "-";
  if (has_arguments && has_file) {
    return absl::InvalidArgumentError(
        "give texts as arguments or --input, not both");
  }
  const std::string name = has_file ? input.file : "standard input";
  std::unique_ptr<TextSource> source(new TextSource(std::move(input), name));
  const TextInput& from = source->input_;
  if (has_arguments) {
    if (from.field_given) {
      return absl::InvalidArgumentError(
          "--field is for CSV and JSON; arguments are plain texts");
    }
    if (from.format != InputFormat::kAuto &&
        from.format != InputFormat::kLines) {
      return absl::InvalidArgumentError(
          absl::StrCat("--input_format=", WordOf(from.format),
                       " is for --input and standard input; arguments are "
                       "plain texts"));
    }
    return source;
  }
  absl::StatusOr<InputFormat> format = from.format;
  const bool by_name = from.format == InputFormat::kAuto;
  if (by_name) format = InputFormat::kLines;
  if (by_name && has_file) format = FormatOfFile(name);
  if (!format.ok()) return format.status();
  source->guessed_lines_ = by_name && *format == InputFormat::kLines;
  if (from.field_given && *format == InputFormat::kLines) {
    return absl::InvalidArgumentError(
        absl::StrCat("--field is for CSV and JSON, and ", name,
                     " is read as lines; add --input_format=csv, tsv, json or "
                     "jsonl"));
  }
  source->json_ = *format == InputFormat::kJsonl;
  if (*format == InputFormat::kCsv) {
    source->records_ = std::make_unique<CsvReader>(from.field, ',');
  } else if (*format == InputFormat::kTsv) {
    source->records_ = std::make_unique<CsvReader>(from.field, '\t');
  } else if (*format == InputFormat::kJson) {
    source->records_ = std::make_unique<JsonArrayReader>(from.field);
  }
  if (has_file) {
    auto lines = LineReader::OpenFile(name);
    if (!lines.ok()) return lines.status();
    source->lines_ = *std::move(lines);
  } else {
    source->lines_ = std::make_unique<LineReader>(name, *from.standard_input,
                                                  from.descriptor);
  }
  // A pipe may be silent for long: it is looked at with its first text.
  const bool file_is_there = source->lines_->bytes_total() >= 0;
  if (file_is_there || source->records_ != nullptr) {
    const absl::Status checked = source->CheckBeginning();
    if (!checked.ok()) return checked;
  }
  if (source->records_ == nullptr) return source;
  const absl::Status begun = source->records_->Begin(source->lines_.get());
  if (!begun.ok()) {
    return absl::Status(begun.code(),
                        absl::StrCat(name, ": ", begun.message()));
  }
  return source;
}

void TextSource::StopWhen(std::function<bool()> stop) {
  if (lines_ != nullptr) lines_->StopWhen(std::move(stop));
}

absl::StatusOr<bool> TextSource::Next(std::string* text,
                                      absl::Status* refused) {
  text->clear();
  *refused = absl::OkStatus();
  absl::StatusOr<bool> more = true;
  if (lines_ != nullptr) {
    const absl::Status checked = CheckBeginning();
    if (!checked.ok()) return checked;
    more = records_ != nullptr ? NextRecord(text, refused)
                               : NextLine(text, refused);
  } else if (texts_read_ < static_cast<int64_t>(input_.arguments.size())) {
    *text = input_.arguments[texts_read_];
  } else {
    more = false;
  }
  if (more.ok() && *more) ++texts_read_;
  return more;
}

absl::Status TextSource::CheckBeginning() {
  if (checked_) return absl::OkStatus();
  auto bytes = lines_->Peek();
  for (size_t had = 0;
       bytes.ok() && bytes->size() > had && NeedsMoreFirstBytes(*bytes);) {
    had = bytes->size();
    bytes = lines_->PeekMore();
  }
  if (!bytes.ok()) return bytes.status();
  checked_ = true;
  return CheckFirstBytes(name_, *bytes);
}

absl::Status TextSource::CheckLineEnds() const {
  const bool only_line =
      texts_read_ == 0 && blank_lines_ == 0 && !lines_->line_ended();
  if (held_length_ > LineReader::kMaxLineBytes) return absl::OkStatus();
  // Next takes the last one away.
  const auto last = held_length_ - static_cast<int64_t>(held_line_.size());
  if (!only_line ||
      last + std::count(held_line_.begin(), held_line_.end(), '\r') < 2) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name_,
                   " ends its lines in CR alone; convert it, such as with tr "
                   "'\\r' '\\n'"));
}

absl::Status TextSource::Refuse(absl::string_view words) const {
  return client::MakeError(absl::StatusCode::kInvalidArgument,
                           absl::StrCat("inputs[", texts_read_, "] ", words),
                           /*reason=*/"",
                           {{"input_index", absl::StrCat(texts_read_)}});
}

absl::Status TextSource::RefuseLength(int64_t length) const {
  if (length <= LineReader::kMaxLineBytes) return absl::OkStatus();
  return Refuse(absl::StrCat("is a line of ", length, " bytes; the most is ",
                             LineReader::kMaxLineBytes));
}

absl::Status TextSource::RefuseNul(absl::string_view text) const {
  const size_t at = text.find('\0');
  if (at == absl::string_view::npos) return absl::OkStatus();
  return Refuse(absl::StrCat(
      "has a NUL at byte ", at,
      "; to convert texts separated by NULs: tr '\\0' '\\n'; UTF-16: iconv -f "
      "UTF-16LE -t UTF-8"));
}

void TextSource::NoteFormat(absl::string_view line) const {
  if (input_.note == nullptr || !guessed_lines_) return;
  for (const auto& [separator, upper, format] :
       {std::tuple(',', "CSV", "csv"), std::tuple('\t', "TSV", "tsv")}) {
    if (!LooksLikeTable(line, input_.field, separator)) continue;
    input_.note(absl::StrCat(
        "note: ", name_, " looks like ", upper,
        " and is read as lines, a text each; --input_format=", format,
        " reads the column \"", input_.field,
        "\", --input_format=lines omits this note"));
    return;
  }
  if (LooksLikeJson(line)) {
    input_.note(
        absl::StrCat("note: ", name_,
                     " looks like JSON and is read as lines, a text each; "
                     "--input_format=jsonl or json reads the JSON, "
                     "--input_format=lines omits this note"));
  }
}

void TextSource::NoteFirst(absl::string_view with, bool* noted) {
  if (input_.note == nullptr || *noted) return;
  *noted = true;
  input_.note(
      absl::StrCat("note: ", NameOf(texts_read_), " is the first with ", with));
}

void TextSource::NoteLineBreak() {
  NoteFirst(
      "a line break inside quotes; if none is meant there, a quote is stray, "
      "and the rows up to the next quote are part of it",
      &line_break_noted_);
}

void TextSource::NoteReturn() {
  NoteFirst(
      "a CR inside; if a CR alone ends lines, they are read as one: convert "
      "them, such as with tr '\\r' '\\n'",
      &return_noted_);
}

bool TextSource::IsBlank(absl::string_view line) const {
  return line.find_first_not_of(json_ ? " \t\r" : "\r") ==
         absl::string_view::npos;
}

bool TextSource::Ready() {
  if (lines_ == nullptr || !checked_) return true;
  if (records_ != nullptr) {
    if (lines_->bytes_total() >= 0) return true;  // a file is never silent
    return lines_->Ready([this](absl::string_view bytes) {
      return records_->HoldsRecord(bytes);
    });
  }
  const auto line_ends = [](absl::string_view bytes) {
    return bytes.find('\n') != absl::string_view::npos;
  };
  while (!giving_) {
    if (!lines_->Ready(line_ends)) return false;
    LookAhead();
  }
  return true;
}

void TextSource::LookAhead() {
  more_ = lines_->Next(&held_line_, &held_length_);
  giving_ = true;
  if (!more_.ok() || !*more_) return;  // the blank lines were the last
  const absl::Status checked = CheckLineEnds();
  if (!checked.ok()) more_ = checked;
  const bool blank =
      held_length_ <= LineReader::kMaxLineBytes && IsBlank(held_line_);
  if (blank) ++blank_lines_;
  giving_ = !checked.ok() || !blank;
}

absl::StatusOr<bool> TextSource::NextLine(std::string* text,
                                          absl::Status* refused) {
  while (!giving_) LookAhead();
  if (!more_.ok() || !*more_) return more_;
  if (blank_lines_ > 0) {
    // Of lines, the server refuses it, as any empty text.
    if (json_) *refused = Refuse("is a blank line before others");
    --blank_lines_;
    return true;
  }
  giving_ = false;
  *refused = RefuseLength(held_length_);
  if (!refused->ok()) return true;
  *refused = RefuseNul(held_line_);  // it would end what is read as JSON
  if (!refused->ok()) return true;
  if (!json_) {
    *text = std::move(held_line_);
    if (texts_read_ == 0) NoteFormat(*text);
    if (text->find('\r') != std::string::npos) NoteReturn();
    return true;
  }
  auto found = JsonText(held_line_, input_.field);
  if (!found.ok()) {
    const size_t first = held_line_.find_first_not_of(" \t");
    *refused = Refuse(absl::StrCat(
        found.status().message(),
        texts_read_ == 0 && held_line_[first] == '['
            ? "; if the input is one JSON array: --input_format=json"
            : ""));
  }
  if (found.ok()) *text = *std::move(found);
  return true;
}

absl::StatusOr<bool> TextSource::NextRecord(std::string* text,
                                            absl::Status* refused) {
  std::string wrong;
  const absl::StatusOr<bool> more = records_->Next(lines_.get(), text, &wrong);
  if (absl::IsInvalidArgument(more.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(texts_read_), ": ", more.status().message()));
  }
  if (records_->spans_lines()) NoteLineBreak();
  if (records_->holds_return()) NoteReturn();
  if (!wrong.empty()) {
    *refused = Refuse(wrong);
  } else if (!records_->has_escapes()) {
    *refused = RefuseNul(*text);
    if (!refused->ok()) text->clear();
  }
  return more;
}

std::string TextSource::NameOf(int64_t index) const {
  if (lines_ == nullptr) return absl::StrCat("argument ", index + 1);
  if (records_ == nullptr) return absl::StrCat(name_, ":", index + 1);
  return absl::StrCat(name_, ": ", records_->noun(), " ", index + 1);
}

double TextSource::Share(int64_t texts) const {
  if (lines_ == nullptr) {
    return static_cast<double>(texts) / input_.arguments.size();
  }
  const int64_t total = lines_->bytes_total();
  if (total <= 0) return -1;
  if (texts_read_ == 0) return 0;
  const double read = static_cast<double>(lines_->bytes_read()) / total;
  return std::min(1.0, read) * texts / texts_read_;
}

}  // namespace encoderd::ctl
