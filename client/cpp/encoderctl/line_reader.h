// The lines or the bytes of a file, a pipe or a terminal, read so that a person
// can stop it: neither silence nor a line that never ends makes it deaf. Takes
// the memory of one line. Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_LINE_READER_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_LINE_READER_H_

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd::ctl {

class LineReader {
 public:
  static constexpr int64_t kMaxLineBytes = 16 << 20;

  // Files only: NOT_FOUND, or the system's words, if one cannot be opened;
  // FAILED_PRECONDITION for a folder.
  static absl::StatusOr<std::unique_ptr<LineReader>> OpenFile(
      const std::string& file);
  // Reads `descriptor`, which stays open; -1: `stream`, which never blocks.
  LineReader(std::string name, std::istream& stream, int descriptor);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Asked before each read, and ten times per second while there is nothing
  // to read; true ends the reading with CANCELLED.
  void StopWhen(std::function<bool()> stop) { stop_ = std::move(stop); }

  // The next line without its end (LF or CR LF), and its length in bytes; false
  // at the end. A byte order mark before the first is passed over. A line past
  // kMaxLineBytes is passed over, and *line is empty. DATA_LOSS if reading
  // fails.
  absl::StatusOr<bool> Next(std::string* line, int64_t* length);

  // Reads what is there, without waiting, until the bytes that come next are
  // `enough`; whether they are, or will be no more: at the end, after an error,
  // or with a full buffer.
  bool Ready(absl::FunctionRef<bool(absl::string_view)> enough);

  // Whether the line that Next gave last had an end: the input's last may not.
  bool line_ended() const { return line_ended_; }

  // Passes over a UTF-8 byte order mark where the input begins with one, in
  // however many pieces it arrives. Call it before Next and Peek.
  absl::Status SkipByteOrderMark();

  // Instead of Next, for what is not made of lines: the bytes that come next,
  // at least one; none at the end. They stay next until Consume takes them.
  absl::StatusOr<absl::string_view> Peek();
  // The same after one more read, which waits: at the end, no more than before.
  // For the first bytes, which a pipe may give one by one.
  absl::StatusOr<absl::string_view> PeekMore();
  // Of those that Peek gave, at most all.
  void Consume(size_t bytes);

  // Of the lines that were read, with their ends, or of what was consumed.
  int64_t bytes_read() const { return bytes_read_; }
  // Of the file; -1: not known.
  int64_t bytes_total() const { return bytes_total_; }

 private:
  // Reads on once all that was read is used; false at the end.
  absl::StatusOr<bool> Fill();
  // Reads once, behind what is in buffer_, which must have room; false at the
  // end.
  absl::StatusOr<bool> Extend();
  // The number of bytes that came to end_; 0 at the end.
  absl::StatusOr<int64_t> Read();
  // Whether Read would not wait.
  bool Readable() const;

  const std::string name_;
  std::istream* const stream_;  // null: descriptor_
  const int descriptor_;
  const bool owned_;
  std::function<bool()> stop_;
  std::string buffer_;
  size_t begin_ = 0;  // of what is not used yet in buffer_
  size_t end_ = 0;
  bool ended_ = false;
  bool line_ended_ = false;
  int64_t bytes_read_ = 0;
  int64_t bytes_total_ = -1;

  LineReader(std::string name, std::istream* stream, int descriptor,
             bool owned);
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_LINE_READER_H_
