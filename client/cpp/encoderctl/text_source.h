// The texts of one command: its arguments, a file or standard input, one text
// a line. Reads as it goes: a file of any size takes the memory of one line.
// Not thread-safe.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_TEXT_SOURCE_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_TEXT_SOURCE_H_

#include <cstdint>
#include <fstream>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace encoderd::ctl {

class TextSource {
 public:
  static constexpr int64_t kMaxLineBytes = 16 << 20;

  // Arguments if there are any, else `file` ("-": `standard_input`).
  // INVALID_ARGUMENT if both are given or the file cannot be opened.
  static absl::StatusOr<std::unique_ptr<TextSource>> Open(
      std::vector<std::string> arguments, const std::string& file,
      std::istream& standard_input);

  // The next text, without its line end (LF or CR LF); false at the end. An
  // empty line is a text too: the server refuses it, by its number.
  // A line past kMaxLineBytes is passed over and gives no text but, in
  // *refused, INVALID_ARGUMENT. DATA_LOSS if reading fails.
  absl::StatusOr<bool> Next(std::string* text, absl::Status* refused);
  // The same where such a line ends the list.
  absl::StatusOr<bool> Next(std::string* text);

  // Whether Next would have to wait for whoever writes what it reads, as far
  // as can be told without reading.
  bool NeedsMore() const;

  // What a person calls the text with this index: "big.txt:12", "argument 3".
  std::string NameOf(int64_t index) const;

  // Passes over the first `texts` texts of a file, which take `bytes` bytes
  // with their line ends. Only before the first Next.
  void Skip(int64_t texts, int64_t bytes);

  int64_t bytes_read() const { return bytes_read_; }
  int64_t texts_read() const { return texts_read_; }
  // The share that was read, 0 to 1; negative where the end is not known.
  double Progress() const { return Share(texts_read_, bytes_read_); }
  // The same of the first `texts` texts, which take `bytes` bytes.
  double Share(int64_t texts, int64_t bytes) const;

 private:
  TextSource(std::vector<std::string> arguments, std::string name)
      : arguments_(std::move(arguments)), name_(std::move(name)) {}

  absl::StatusOr<bool> NextLine(std::string* text, absl::Status* refused);

  const std::vector<std::string> arguments_;
  const std::string name_;  // of the file
  std::ifstream file_;
  std::istream* stream_ = nullptr;  // null: arguments
  int64_t texts_read_ = 0;
  int64_t bytes_read_ = 0;
  int64_t bytes_total_ = -1;  // -1: not known
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_TEXT_SOURCE_H_
