#include "client/cpp/encoderctl/csv_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace encoderd::ctl {
namespace {

constexpr size_t kMostFields = 1 << 16;  // of a row that are kept

// Where a row stands between two bytes.
enum class State {
  kFieldStart,
  kPlain,
  kQuoted,
  kQuoteInQuoted,  // the field's end, or the first of two
  kReturn,         // a CR outside quotes
  kEnd,
};

// Splits the bytes of one row into fields.
class RowParser {
 public:
  explicit RowParser(char separator) : separator_(separator) {}

  // Takes bytes up to the end of the row, or until it is endless; returns how
  // many.
  size_t Take(absl::string_view bytes) {
    size_t at = 0;
    while (at < bytes.size() && !ended() && !endless()) Step(bytes[at++]);
    return at;
  }

  bool ended() const { return state_ == State::kEnd; }
  bool in_quotes() const { return state_ == State::kQuoted; }
  bool empty() const { return bytes_ == 0; }
  bool too_long() const { return bytes_ > RecordReader::kMaxTextBytes; }
  // Quotes that are not closed would hold the rest of the file.
  bool endless() const { return in_quotes() && too_long(); }
  bool too_wide() const { return too_wide_; }
  bool spans_lines() const { return spans_lines_; }
  bool holds_return() const { return holds_return_; }
  bool text_after_quote() const {
    return text_after_quote_ || (state_ == State::kReturn && quoted_);
  }

  std::vector<std::string> TakeFields() {
    if (state_ == State::kReturn) Add('\r');  // the input ends in it
    fields_.push_back(std::move(field_));
    return std::move(fields_);
  }

 private:
  void Step(char c) {
    if (state_ == State::kQuoted) {
      if (c == '"') {
        state_ = State::kQuoteInQuoted;
      } else {
        spans_lines_ |= c == '\n';
        Add(c);
      }
      return;
    }
    if (state_ == State::kReturn && c != '\n') {
      text_after_quote_ |= quoted_;
      holds_return_ = true;
      Add('\r');
      state_ = State::kPlain;
    }
    if (c == '\n') {
      state_ = State::kEnd;
    } else if (c == '\r' && state_ != State::kReturn) {
      quoted_ = state_ == State::kQuoteInQuoted;
      state_ = State::kReturn;
    } else if (c == separator_) {
      ++bytes_;
      too_wide_ |= fields_.size() + 1 == kMostFields;
      if (!too_wide_) fields_.push_back(std::move(field_));
      field_.clear();
      state_ = State::kFieldStart;
    } else if (c == '"' && state_ == State::kFieldStart) {
      ++bytes_;
      state_ = State::kQuoted;
    } else if (c == '"' && state_ == State::kQuoteInQuoted) {
      Add(c);
      state_ = State::kQuoted;
    } else {
      text_after_quote_ |= state_ == State::kQuoteInQuoted;
      Add(c);
      state_ = State::kPlain;
    }
  }

  void Add(char c) {
    ++bytes_;
    if (!too_long()) field_ += c;
  }

  const char separator_;
  State state_ = State::kFieldStart;
  std::vector<std::string> fields_;
  std::string field_;
  int64_t bytes_ = 0;
  bool quoted_ = false;  // in kReturn: a closing quote precedes it
  bool text_after_quote_ = false;
  bool too_wide_ = false;
  bool spans_lines_ = false;
  bool holds_return_ = false;
};

absl::Status NoColumn(const std::string& field,
                      const std::vector<std::string>& header) {
  const std::string known =
      absl::StrCat("\"", absl::StrJoin(header, "\", \""), "\"");
  std::string remedy =
      "name one of them with --field; if these are texts, put a header before "
      "them";
  if (header.size() == 1) {
    for (const auto& [separator, instead] :
         {std::pair(';', "separate columns by commas"),
          std::pair(',', "--input_format=csv reads commas"),
          std::pair('\t', "--input_format=tsv reads tabs")}) {
      if (absl::StrContains(header[0], separator)) remedy = instead;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the first row names no column \"", field,
                   "\"; available: ", known.substr(0, 200), "; ", remedy));
}

}  // namespace

absl::StatusOr<CsvReader::Row> CsvReader::NextRow(LineReader* in,
                                                  std::string* wrong) {
  for (int64_t blanks = 0;; ++blanks) {
    RowParser row(separator_);
    while (!row.ended()) {
      const auto bytes = in->Peek();
      if (!bytes.ok()) return bytes.status();
      if (bytes->empty()) {
        if (row.empty()) return Row();
        break;
      }
      in->Consume(row.Take(*bytes));
      if (row.endless()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a quoted field has no end within ", RecordReader::kMaxTextBytes,
            " bytes: close the quote"));
      }
    }
    if (row.empty()) continue;
    if (row.in_quotes()) {
      return absl::InvalidArgumentError(
          "a quoted field has no end: close the quote");
    }
    if (row.too_long()) {
      *wrong =
          absl::StrCat("has more than ", RecordReader::kMaxTextBytes, " bytes");
    } else if (row.too_wide()) {
      *wrong = absl::StrCat("has more than ", kMostFields, " fields");
    } else if (row.text_after_quote()) {
      *wrong =
          "has text after a closing quote: double the quotes inside a quoted "
          "field";
    }
    return Row{row.TakeFields(), blanks, row.spans_lines(), row.holds_return()};
  }
}

absl::Status CsvReader::Begin(LineReader* in) {
  const absl::Status skipped = in->SkipByteOrderMark();
  if (!skipped.ok()) return skipped;
  std::string wrong;
  const auto row = NextRow(in, &wrong);
  if (!row.ok()) return row.status();
  const std::vector<std::string>* header = &row->fields;
  if (row->holds_return) {
    return absl::InvalidArgumentError(
        "the first row holds a CR without a LF; if lines end so, convert them, "
        "such as with tr '\\r' '\\n'");
  }
  if (header->empty()) return absl::OkStatus();  // no rows, no texts
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the first row ", wrong));
  }
  columns_ = header->size();
  const auto found = std::find(header->begin(), header->end(), field_);
  if (found == header->end()) return NoColumn(field_, *header);
  if (std::count(header->begin(), header->end(), field_) > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the first row has more than one column \"", field_, "\""));
  }
  column_ = found - header->begin();
  return absl::OkStatus();
}

bool CsvReader::HoldsRecord(absl::string_view bytes) const {
  if (row_.has_value()) return true;
  // Blank rows are passed over.
  const size_t begin = bytes.find_first_not_of("\r\n");
  if (begin == absl::string_view::npos) return false;
  RowParser row(separator_);
  row.Take(bytes.substr(begin));
  return row.ended();
}

absl::StatusOr<bool> CsvReader::Next(LineReader* in, std::string* text,
                                     std::string* wrong) {
  if (!row_.has_value()) {
    wrong_.clear();
    auto read = NextRow(in, &wrong_);
    if (!read.ok()) return read.status();
    if (read->fields.empty()) return false;
    row_ = *std::move(read);
  }
  if (columns_ == 1 && row_->blanks > 0) {
    --row_->blanks;
    spans_lines_ = holds_return_ = false;
    text->clear();
    return true;
  }
  std::vector<std::string> fields = std::move(row_->fields);
  spans_lines_ = row_->spans_lines;
  holds_return_ = row_->holds_return;
  row_.reset();
  *wrong = wrong_;
  if (!wrong->empty()) return true;
  if (fields.size() != columns_) {
    *wrong = absl::StrCat(
        "has ", fields.size(), fields.size() == 1 ? " field" : " fields",
        "; the first row has ", columns_, ": ",
        fields.size() < columns_
            ? "add the missing ones, or quote a field that holds a line break"
        : separator_ == ',' ? "quote a field that holds a comma"
                            : "quote a field that holds a tab");
    return true;
  }
  *text = std::move(fields[column_]);
  return true;
}

}  // namespace encoderd::ctl
