// The elements of a file that is one JSON array: strings, or objects with the
// text as a field. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_JSON_ARRAY_READER_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_JSON_ARRAY_READER_H_

#include <optional>
#include <string>
#include <utility>

#include "client/cpp/encoderctl/record_reader.h"

namespace encoderd::ctl {

class JsonArrayReader : public RecordReader {
 public:
  explicit JsonArrayReader(std::string field) : field_(std::move(field)) {}

  absl::Status Begin(LineReader* in) override;
  absl::StatusOr<bool> Next(LineReader* in, std::string* text,
                            std::string* wrong) override;
  bool HoldsRecord(absl::string_view bytes) const override;
  bool has_escapes() const override { return true; }
  const char* noun() const override { return "element"; }

 private:
  // The next byte that is no blank, not consumed; none at the end. A NUL is a
  // byte like any other.
  absl::StatusOr<std::optional<char>> Look(LineReader* in) const;
  // The bytes of one element, up to what separates it from the next; false: it
  // is longer than kMaxTextBytes, and was passed over.
  absl::StatusOr<bool> ReadElement(LineReader* in, std::string* bytes) const;
  // Passes over what is between two elements; false: the array's end.
  absl::StatusOr<bool> ReadSeparator(LineReader* in);

  const std::string field_;
  bool first_ = true;   // no element was read yet
  bool ended_ = false;  // the array is closed
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_JSON_ARRAY_READER_H_
