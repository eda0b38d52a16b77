// Texts from files whose records are not lines. Reads as it goes, in the memory
// of one record. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_RECORD_READER_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_RECORD_READER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/encoderctl/line_reader.h"

namespace encoderd::ctl {

class RecordReader {
 public:
  static constexpr int64_t kMaxTextBytes = LineReader::kMaxLineBytes;

  virtual ~RecordReader() = default;

  // Reads what precedes the records. INVALID_ARGUMENT if the texts cannot be
  // found: the input is of another format, or has no such field.
  virtual absl::Status Begin(LineReader* in) = 0;

  // The next record's text; false at the end. A record that gives none sets
  // *wrong to the end of a sentence, "has 2 fields ...", and the next call
  // continues after it. INVALID_ARGUMENT if nothing that follows can be read.
  virtual absl::StatusOr<bool> Next(LineReader* in, std::string* text,
                                    std::string* wrong) = 0;

  // Whether `bytes`, which come next, hold a record's end. Where they do not, a
  // pipe may be silent before the next record.
  virtual bool HoldsRecord(absl::string_view bytes) const = 0;

  // Whether a field of the record last read holds a line break, so that a stray
  // quote may have swallowed the records between.
  virtual bool spans_lines() const { return false; }

  // Whether a field of the record last read holds a CR outside quotes, which
  // may have been meant to end it.
  virtual bool holds_return() const { return false; }

  // Whether a text may hold any byte that its writer meant, such as a NUL.
  virtual bool has_escapes() const = 0;
  // What a record is called: "row", "element".
  virtual const char* noun() const = 0;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_RECORD_READER_H_
