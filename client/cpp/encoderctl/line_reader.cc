#include "client/cpp/encoderctl/line_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace encoderd::ctl {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr int kTickMs = 100;  // asks whether to stop
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::OpenFile(
    const std::string& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info = {};
  if (descriptor < 0 || fstat(descriptor, &info) != 0) {
    const std::string why = std::generic_category().message(errno);
    if (descriptor >= 0) close(descriptor);
    return absl::NotFoundError(absl::StrCat("cannot read ", file, ": ", why));
  }
  std::unique_ptr<LineReader> reader(
      new LineReader(file, nullptr, descriptor, /*owned=*/true));
  if (S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(file, " is a folder; --input takes a file"));
  }
  if (S_ISREG(info.st_mode)) reader->bytes_total_ = info.st_size;
  return reader;
}

LineReader::LineReader(std::string name, std::istream* stream, int descriptor,
                       bool owned)
    : name_(std::move(name)),
      stream_(stream),
      descriptor_(descriptor),
      owned_(owned),
      buffer_(kBufferBytes, '\0') {}

LineReader::LineReader(std::string name, std::istream& stream, int descriptor)
    : LineReader(std::move(name), descriptor < 0 ? &stream : nullptr,
                 descriptor, /*owned=*/false) {}

LineReader::~LineReader() {
  if (owned_) close(descriptor_);
}

absl::Status LineReader::SkipByteOrderMark() {
  while (true) {
    const absl::string_view start =
        absl::string_view(buffer_).substr(begin_, end_ - begin_);
    if (absl::StartsWith(start, kByteOrderMark)) {
      Consume(kByteOrderMark.size());
      return absl::OkStatus();
    }
    // Bytes that may become the mark: a pipe gives what was written to it.
    if (!absl::StartsWith(kByteOrderMark, start)) return absl::OkStatus();
    const absl::StatusOr<bool> more = Extend();
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
  }
}

absl::StatusOr<absl::string_view> LineReader::Peek() {
  const absl::StatusOr<bool> more = Fill();
  if (!more.ok()) return more.status();
  if (!*more) return absl::string_view();
  return absl::string_view(buffer_).substr(begin_, end_ - begin_);
}

absl::StatusOr<absl::string_view> LineReader::PeekMore() {
  const absl::StatusOr<bool> more = Extend();
  if (!more.ok()) return more.status();
  return absl::string_view(buffer_).substr(begin_, end_ - begin_);
}

void LineReader::Consume(size_t bytes) {
  begin_ += bytes;
  bytes_read_ += static_cast<int64_t>(bytes);
}

absl::StatusOr<int64_t> LineReader::Read() {
  while (true) {
    if (stop_ != nullptr && stop_()) return absl::CancelledError("stopped");
    if (stream_ != nullptr) {
      stream_->read(buffer_.data() + end_,
                    static_cast<std::streamsize>(kBufferBytes - end_));
      if (!stream_->bad()) return stream_->gcount();
      return absl::DataLossError(absl::StrCat("cannot read ", name_));
    }
    // As main leaves one that was closed. It may never become ready.
    const int flags = fcntl(descriptor_, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY) {
      return absl::DataLossError(
          absl::StrCat("cannot read ", name_, ": it is closed"));
    }
    // A signal ends this, but not a read that blocks.
    pollfd input = {descriptor_, POLLIN, 0};
    const int ready = poll(&input, 1, kTickMs);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t got =
        read(descriptor_, buffer_.data() + end_, kBufferBytes - end_);
    if (got >= 0) return got;
    if (errno == EINTR || errno == EAGAIN) continue;
    return absl::DataLossError(absl::StrCat(
        "cannot read ", name_, ": ", std::generic_category().message(errno)));
  }
}

bool LineReader::Readable() const {
  pollfd input = {descriptor_, POLLIN, 0};
  return stream_ != nullptr || poll(&input, 1, 0) > 0;
}

bool LineReader::Ready(absl::FunctionRef<bool(absl::string_view)> enough) {
  while (!ended_ &&
         !enough(absl::string_view(buffer_).substr(begin_, end_ - begin_))) {
    if (begin_ == 0 && end_ == kBufferBytes) return true;
    if (end_ == kBufferBytes) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (!Readable()) return false;
    if (!Extend().ok()) return true;
  }
  return true;
}

absl::StatusOr<bool> LineReader::Fill() {
  if (begin_ < end_) return true;
  begin_ = end_ = 0;
  return Extend();
}

absl::StatusOr<bool> LineReader::Extend() {
  if (ended_) return false;
  const absl::StatusOr<int64_t> got = Read();
  if (!got.ok()) return got.status();
  end_ += static_cast<size_t>(*got);
  ended_ = *got == 0;  // a terminal would start over
  return !ended_;
}

absl::StatusOr<bool> LineReader::Next(std::string* line, int64_t* length) {
  line->clear();
  *length = 0;
  if (bytes_read_ == 0) {
    const absl::Status skipped = SkipByteOrderMark();
    if (!skipped.ok()) return skipped;
  }
  bool whole = false;
  bool any = false;
  while (!whole) {
    const absl::StatusOr<bool> more = Fill();
    if (!more.ok()) return more;
    if (!*more) break;
    any = true;
    const char* const from = buffer_.data() + begin_;
    const void* const feed = std::memchr(from, '\n', end_ - begin_);
    whole = feed != nullptr;
    const size_t bytes =
        whole ? static_cast<const char*>(feed) - from : end_ - begin_;
    const int64_t room = kMaxLineBytes - *length;
    line->append(from,
                 std::clamp<int64_t>(room, 0, static_cast<int64_t>(bytes)));
    *length += static_cast<int64_t>(bytes);
    begin_ += bytes + (whole ? 1 : 0);
  }
  line_ended_ = whole;
  bytes_read_ += *length + (whole ? 1 : 0);
  if (*length > kMaxLineBytes) line->clear();
  if (!line->empty() && line->back() == '\r') line->pop_back();
  return any;
}

}  // namespace encoderd::ctl
