#include "client/cpp/encoderctl/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/json_line.h"
#include "client/cpp/encoderctl/number.h"
#include "client/cpp/encoderctl/resume_mark.h"
#include "client/cpp/encoderctl/scales_file.h"
#include "client/cpp/encoderctl/stoppable_write.h"
#include "client/cpp/error.h"

namespace encoderd::ctl {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<Writer>> Writer::Open(
    const std::string& file, bool npy, const Environment& environment) {
  std::unique_ptr<Writer> writer(
      new Writer(file == "-" ? "standard output" : file, npy));
  std::error_code ignored;
  const bool is_file =  // or will be; no pipe
      file != "-" && (!std::filesystem::exists(file, ignored) ||
                      std::filesystem::is_regular_file(file, ignored));
  if (npy || is_file) {
    const absl::Status locked = writer->lock_.Take(file);
    if (!locked.ok()) return locked;
    const std::string resume = ResumePathOf(file);
    const bool marks = HoldsMarks(resume);
    if (marks && !writer->lock_.found()) {
      std::filesystem::remove(resume, ignored);  // the rows are gone
    } else if (marks) {
      return absl::FailedPreconditionError(absl::StrCat(
          file,
          " holds rows of an interrupted embed; to keep them, choose another "
          "--output; to discard them, delete ",
          resume));
    }
  }
  if (npy) return writer;
  writer->is_file_ = is_file;
  writer->descriptor_ =
      file == "-"
          ? environment.out_descriptor
          : open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file == "-") {
    writer->out_ = &environment.out;
  } else if (writer->descriptor_ < 0) {
    return CannotOpen(file, errno);
  }
  return writer;
}

Writer::~Writer() {
  if (out_ == nullptr && descriptor_ >= 0) close(descriptor_);
}

absl::Status Writer::Begin() {
  if (!begun_ && is_file_ && ftruncate(descriptor_, 0) != 0) {
    return CannotWrite(name_, errno);
  }
  begun_ = true;
  return absl::OkStatus();
}

absl::Status Writer::BeginRows(int64_t columns) {
  RemoveOldScales(name_, ScalesPathOf(name_));
  auto rows = RowFile::Open(name_, {"<f4", columns, sizeof(float)}, 0);
  if (!rows.ok()) return rows.status();
  rows_ = *std::move(rows);
  columns_ = columns;
  return absl::OkStatus();
}

absl::Status Writer::Write(absl::string_view bytes) {
  if (lost_.ok()) lost_ = Begin();
  if (!lost_.ok()) return lost_;
  buffer_.append(bytes.data(), bytes.size());
  ends_.push_back(buffer_.size());
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

size_t Writer::Put() const {
  errno = 0;
  if (descriptor_ < 0) {
    out_->write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    out_->flush();
    return *out_ ? buffer_.size() : 0;
  }
  return WriteUntilStopped(descriptor_, buffer_);
}

absl::Status Writer::Flush() {
  if (!lost_.ok() || buffer_.empty()) return lost_;
  const size_t done = Put();
  if (done < buffer_.size()) {
    lost_ = errno == EINTR ? absl::CancelledError() : CannotWrite(name_, errno);
  }
  const auto next = std::upper_bound(ends_.begin(), ends_.end(), done);
  whole_ += next - ends_.begin();
  cut_ = done > (next == ends_.begin() ? 0 : *(next - 1));
  buffer_.clear();
  ends_.clear();
  return lost_;
}

absl::Status Writer::WriteRows(absl::Span<const float> values, int64_t rows,
                               int64_t columns) {
  if (rows == 0) return absl::OkStatus();
  if (columns < 1 || (rows_ != nullptr && columns != columns_)) {
    return absl::InternalError(
        absl::StrCat("a row of ", columns, " values after rows of ", columns_));
  }
  absl::Status status;
  if (rows_ == nullptr) status = BeginRows(columns);
  if (!status.ok()) return status;
  status = rows_->Append({reinterpret_cast<const char*>(values.data()),
                          values.size() * sizeof(float)});
  if (status.ok()) ++whole_;
  return status;
}

absl::Status Writer::Finish(bool done) {
  if (npy_) {
    if (done && rows_ == nullptr) return BeginRows(0);
    return rows_ == nullptr ? absl::OkStatus() : rows_->Close();
  }
  if (done && lost_.ok()) lost_ = Begin();
  const absl::Status flushed = Flush();
  if (out_ != nullptr) return flushed;
  // A file system over a network may tell of a full disk only here.
  const int closed = close(descriptor_);
  descriptor_ = -1;
  if (flushed.ok() && closed != 0 && errno != EINTR) {
    lost_ = CannotWrite(name_, errno);
  }
  return lost_;
}

absl::Status WriteVectors(OutputFormat format, int64_t index, bool states,
                          const VectorResult& result, Writer* writer) {
  if (format == OutputFormat::kNpy) {
    return writer->WriteRows(result.values, result.rows, result.columns);
  }
  std::string text;
  const auto row = [&result](int64_t i) {
    return result.values.subspan(i * result.columns, result.columns);
  };
  if (format == OutputFormat::kText) {
    for (int64_t i = 0; i < result.rows; ++i) {
      AppendFloats(row(i), " ", &text);
      text += '\n';
    }
    if (states) text += '\n';
    return writer->Write(text);
  }
  absl::StrAppend(&text, "{\"index\":", index,
                  ",\"token_count\":", result.token_count,
                  ",\"truncated\":", result.truncated ? "true" : "false");
  if (states) {
    absl::StrAppend(&text, ",\"rows\":", result.rows,
                    ",\"columns\":", result.columns, ",\"states\":[");
    for (int64_t i = 0; i < result.rows; ++i) {
      text += i == 0 ? "[" : ",[";
      AppendFloats(row(i), ",", &text);
      text += ']';
    }
  } else {
    absl::StrAppend(&text, ",\"windows\":", result.windows);
    text += ",\"embedding\":[";
    AppendFloats(result.values, ",", &text);
  }
  text += "]}\n";
  return writer->Write(text);
}

absl::Status WriteError(OutputFormat format, int64_t index,
                        const absl::Status& error, Writer* writer) {
  if (format == OutputFormat::kNpy) return absl::OkStatus();
  if (format != OutputFormat::kJsonl) return writer->Write("\n");
  const auto details = client::GetErrorDetails(error);
  nlohmann::ordered_json json;
  json["index"] = index;
  json["error"]["code"] = absl::StatusCodeToString(error.code());
  json["error"]["message"] = std::string(error.message());
  if (details.has_value() && !details->reason.empty()) {
    json["error"]["reason"] = details->reason;
  }
  return writer->Write(JsonLine(json) + "\n");
}

void LongTexts::Tell(const Invocation& invocation) const {
  if (truncated_ > 0) {
    invocation.Note(TextsWere(truncated_, "cut to max_len"));
  }
  if (windowed_ > 0) {
    invocation.Note(TextsWere(windowed_, "computed in windows"));
  }
}

}  // namespace encoderd::ctl
