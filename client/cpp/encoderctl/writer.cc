#include "client/cpp/encoderctl/writer.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/npy.h"
#include "client/cpp/encoderctl/number.h"
#include "client/cpp/error.h"

namespace encoderd::ctl {

absl::StatusOr<std::unique_ptr<Writer>> Writer::Open(
    const std::string& file, bool npy, std::ostream& standard_output) {
  if (npy && file == "-") {
    return absl::InvalidArgumentError(
        "--format=npy needs --output=FILE: the shape is written into the "
        "file's head at the end");
  }
  std::unique_ptr<Writer> writer(
      new Writer(file == "-" ? "standard output" : file, npy));
  writer->out_ = &standard_output;
  if (file != "-") {
    writer->file_.open(file, std::ios::binary | std::ios::trunc);
    if (!writer->file_) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot open ", file, " for writing"));
    }
    writer->out_ = &writer->file_;
  }
  if (npy) {
    const absl::Status status = writer->Write(NpyHeader(0, 0));
    if (!status.ok()) return status;
  }
  return writer;
}

absl::Status Writer::Check() const {
  if (*out_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("cannot write to ", name_));
}

absl::Status Writer::Write(absl::string_view bytes) {
  out_->write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return Check();
}

absl::Status Writer::WriteRows(absl::Span<const float> values, int64_t rows,
                               int64_t columns) {
  if (rows_ == 0) columns_ = columns;
  if (columns != columns_) {
    return absl::InternalError(
        absl::StrCat("a row of ", columns, " values after rows of ", columns_));
  }
  rows_ += rows;
  return Write({reinterpret_cast<const char*>(values.data()),
                values.size() * sizeof(float)});
}

absl::Status Writer::Finish() {
  if (npy_) {
    out_->clear();
    out_->seekp(0);
    const absl::Status status = Write(NpyHeader(rows_, columns_));
    if (!status.ok()) return status;
  }
  out_->flush();
  return Check();
}

absl::Status WriteVectors(absl::string_view format, int64_t index, bool states,
                          const VectorResult& result, Writer* writer) {
  if (format == "npy") {
    return writer->WriteRows(result.values, result.rows, result.columns);
  }
  std::string text;
  const auto row = [&result](int64_t i) {
    return result.values.subspan(i * result.columns, result.columns);
  };
  if (format == "text") {
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

absl::Status WriteError(absl::string_view format, int64_t index,
                        const absl::Status& error, Writer* writer) {
  if (format == "npy") return absl::OkStatus();
  if (format != "jsonl") return writer->Write("\n");
  const auto details = client::GetErrorDetails(error);
  nlohmann::ordered_json json;
  json["index"] = index;
  json["error"]["code"] = absl::StatusCodeToString(error.code());
  json["error"]["message"] = std::string(error.message());
  if (details.has_value()) json["error"]["reason"] = details->reason;
  return writer->Write(
      json.dump(-1, ' ', false,
                nlohmann::ordered_json::error_handler_t::replace) +
      "\n");
}

void LongTexts::Tell(std::ostream& err) const {
  if (truncated_ > 0) {
    err << truncated_ << (truncated_ == 1 ? " text was" : " texts were")
        << " cut to max_len\n";
  }
  if (windowed_ > 0) {
    err << windowed_ << (windowed_ == 1 ? " text was" : " texts were")
        << " computed in windows\n";
  }
}

}  // namespace encoderd::ctl
