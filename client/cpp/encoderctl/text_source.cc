#include "client/cpp/encoderctl/text_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace encoderd::ctl {

absl::StatusOr<std::unique_ptr<TextSource>> TextSource::Open(
    std::vector<std::string> arguments, const std::string& file,
    std::istream& standard_input) {
  const bool has_arguments = !arguments.empty();
  if (has_arguments && file != "-") {
    return absl::InvalidArgumentError(
        "give texts as arguments or --input, not both");
  }
  std::unique_ptr<TextSource> source(new TextSource(
      std::move(arguments), file == "-" ? "standard input" : file));
  if (has_arguments) return source;
  source->stream_ = &standard_input;
  if (file == "-") return source;
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    return absl::InvalidArgumentError(absl::StrCat(file, " is a folder"));
  }
  source->file_.open(file, std::ios::binary);
  if (!source->file_) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot open ", file, " for reading"));
  }
  const auto size = std::filesystem::file_size(file, error);
  if (!error) source->bytes_total_ = static_cast<int64_t>(size);
  source->stream_ = &source->file_;
  return source;
}

absl::StatusOr<bool> TextSource::Next(std::string* text) {
  absl::Status refused;
  absl::StatusOr<bool> more = Next(text, &refused);
  if (more.ok() && !refused.ok()) return refused;
  return more;
}

absl::StatusOr<bool> TextSource::Next(std::string* text,
                                      absl::Status* refused) {
  if (stream_ != nullptr) return NextLine(text, refused);
  if (texts_read_ == static_cast<int64_t>(arguments_.size())) return false;
  *text = arguments_[texts_read_++];
  return true;
}

void TextSource::Skip(int64_t texts, int64_t bytes) {
  stream_->seekg(bytes);
  texts_read_ = texts;
  bytes_read_ = bytes;
}

bool TextSource::NeedsMore() const {
  return stream_ != nullptr && !file_.is_open() &&
         stream_->rdbuf()->in_avail() == 0;
}

absl::StatusOr<bool> TextSource::NextLine(std::string* text,
                                          absl::Status* refused) {
  text->clear();
  std::streambuf* buffer = stream_->rdbuf();
  int next = buffer->sbumpc();
  if (next == std::char_traits<char>::eof()) {
    if (stream_->bad()) {
      return absl::DataLossError(absl::StrCat("cannot read ", name_));
    }
    return false;
  }
  int64_t bytes = 0;
  while (next != '\n' && next != std::char_traits<char>::eof()) {
    if (++bytes <= kMaxLineBytes) text->push_back(static_cast<char>(next));
    next = buffer->sbumpc();
  }
  bytes_read_ += bytes + 1;
  if (bytes > kMaxLineBytes) {
    text->clear();
    *refused = absl::InvalidArgumentError(
        absl::StrCat("inputs[", texts_read_, "] is a line of ", bytes,
                     " bytes; the most is ", kMaxLineBytes));
  }
  if (!text->empty() && text->back() == '\r') text->pop_back();
  ++texts_read_;
  return true;
}

std::string TextSource::NameOf(int64_t index) const {
  return stream_ == nullptr ? absl::StrCat("argument ", index + 1)
                            : absl::StrCat(name_, ":", index + 1);
}

double TextSource::Share(int64_t texts, int64_t bytes) const {
  if (stream_ == nullptr) {
    return static_cast<double>(texts) / arguments_.size();
  }
  if (bytes_total_ <= 0) return -1;
  return std::min(1.0, static_cast<double>(bytes) / bytes_total_);
}

}  // namespace encoderd::ctl
