// One column of a CSV file (RFC 4180): commas or, as separator, tabs; a header
// row; quoted fields that may hold separators, line ends and doubled quotes.
// Beyond the RFC, and as Python and spreadsheets do: a byte order mark, LF for
// CR LF, quotes inside a field that is not quoted; rows of no bytes are passed
// over. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_CSV_READER_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_CSV_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/encoderctl/record_reader.h"

namespace encoderd::ctl {

class CsvReader : public RecordReader {
 public:
  explicit CsvReader(std::string field, char separator = ',')
      : field_(std::move(field)), separator_(separator) {}

  absl::Status Begin(LineReader* in) override;
  absl::StatusOr<bool> Next(LineReader* in, std::string* text,
                            std::string* wrong) override;
  bool HoldsRecord(absl::string_view bytes) const override;
  bool spans_lines() const override { return spans_lines_; }
  bool holds_return() const override { return holds_return_; }
  bool has_escapes() const override { return false; }
  const char* noun() const override { return "row"; }

 private:
  // The fields of the next row that has any bytes, and how many blank rows
  // come before it; none at the end. *wrong as in Next.
  struct Row {
    std::vector<std::string> fields;
    int64_t blanks = 0;
    bool spans_lines = false;
    bool holds_return = false;
  };
  absl::StatusOr<Row> NextRow(LineReader* in, std::string* wrong);

  const std::string field_;
  const char separator_;
  size_t columns_ = 0;
  size_t column_ = 0;  // of field_
  // Read, and not yet given, with what is wrong with it: a blank row of one
  // column is an empty text, unless only blank rows follow.
  std::optional<Row> row_;
  std::string wrong_;
  bool spans_lines_ = false;
  bool holds_return_ = false;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_CSV_READER_H_
