#include "client/cpp/encoderctl/text_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/csv_reader.h"
#include "client/cpp/encoderctl/json_array_reader.h"
#include "client/cpp/encoderctl/json_text.h"
#include "client/cpp/error.h"

namespace encoderd::ctl {

namespace {

// Endings of files that are not read, and what to do about them.
struct Refusal {
  absl::string_view ending;
  absl::string_view what;
  absl::string_view remedy;
};

constexpr absl::string_view kDecompress =
    "decompress it into a pipe, such as gzip -dc FILE | encoderctl ...";
constexpr absl::string_view kConvert =
    "convert it to .csv or .jsonl, such as pandas' to_json(FILE, "
    "orient=\"records\", lines=True)";

constexpr Refusal kRefusals[] = {
    {".gz", "a compressed file", kDecompress},
    {".bz2", "a compressed file", kDecompress},
    {".xz", "a compressed file", kDecompress},
    {".zst", "a compressed file", kDecompress},
    {".zip", "a compressed file", kDecompress},
    {".parquet", "a Parquet file", kConvert},
    {".arrow", "an Arrow file", kConvert},
    {".feather", "a Feather file", kConvert},
    {".xlsx", "a spreadsheet", "save it as .csv (UTF-8)"},
    {".xls", "a spreadsheet", "save it as .csv (UTF-8)"},
    {".ods", "a spreadsheet", "save it as .csv (UTF-8)"},
    {".tsv", "a file separated by tabs", "convert it to .csv"},
    {".npy", "an array of numbers", "give the file of the texts"},
    {".pkl", "a pickle, which can run code", kConvert},
    {".pickle", "a pickle, which can run code", kConvert},
    {".pdf", "a PDF", "convert it to text, such as pdftotext FILE"},
    {".docx", "a document", "save it as plain text"},
};

// The format of a file by its name; INVALID_ARGUMENT if it is not one of ours.
absl::StatusOr<std::string> FormatOf(const std::string& file) {
  for (const Refusal& refusal : kRefusals) {
    if (!absl::EndsWithIgnoreCase(file, refusal.ending)) continue;
    return absl::InvalidArgumentError(absl::StrCat("--input does not read ",
                                                   file, ", ", refusal.what,
                                                   ": ", refusal.remedy));
  }
  for (const char* format : {"jsonl", "csv", "json"}) {
    if (absl::EndsWithIgnoreCase(file, absl::StrCat(".", format))) {
      return std::string(format);
    }
  }
  return std::string(absl::EndsWithIgnoreCase(file, ".ndjson") ? "jsonl"
                                                               : "lines");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextSource>> TextSource::Open(TextInput input) {
  const bool has_arguments = !input.arguments.empty();
  const bool has_file = input.file != "-";
  if (has_arguments && has_file) {
    return absl::InvalidArgumentError(
        "give texts as arguments or --input, not both");
  }
  const std::string name = has_file ? input.file : "standard input";
  std::unique_ptr<TextSource> source(new TextSource(std::move(input), name));
  const TextInput& from = source->input_;
  if (has_arguments) return source;
  absl::StatusOr<std::string> format = from.format;
  if (from.format == "auto") format = has_file ? FormatOf(name) : "lines";
  if (!format.ok()) return format.status();
  source->json_ = *format == "jsonl";
  if (*format == "csv") {
    source->records_ = std::make_unique<CsvReader>(from.field);
  } else if (*format == "json") {
    source->records_ = std::make_unique<JsonArrayReader>(from.field);
  }
  if (has_file) {
    auto lines = LineReader::OpenFile(name);
    if (!lines.ok()) return lines.status();
    source->lines_ = *std::move(lines);
  } else {
    source->lines_ = std::make_unique<LineReader>(name, *from.standard_input,
                                                  from.descriptor);
  }
  if (source->records_ == nullptr) return source;
  const absl::Status begun = source->records_->Begin(source->lines_.get());
  if (!begun.ok()) {
    return absl::Status(begun.code(),
                        absl::StrCat(name, ": ", begun.message()));
  }
  return source;
}

void TextSource::StopWhen(std::function<bool()> stop) {
  if (lines_ != nullptr) lines_->StopWhen(std::move(stop));
}

absl::StatusOr<bool> TextSource::Next(std::string* text,
                                      absl::Status* refused) {
  text->clear();
  *refused = absl::OkStatus();
  absl::StatusOr<bool> more = true;
  if (lines_ != nullptr) {
    more = records_ != nullptr ? NextRecord(text, refused)
           : json_             ? NextJson(text, refused)
                               : NextLine(text, refused);
  } else if (texts_read_ < static_cast<int64_t>(input_.arguments.size())) {
    *text = input_.arguments[texts_read_];
  } else {
    more = false;
  }
  if (more.ok() && *more) ++texts_read_;
  return more;
}

absl::Status TextSource::Refuse(absl::string_view words) const {
  return client::MakeError(absl::StatusCode::kInvalidArgument,
                           absl::StrCat("inputs[", texts_read_, "] ", words),
                           /*reason=*/"",
                           {{"input_index", absl::StrCat(texts_read_)}});
}

absl::Status TextSource::RefuseLength(int64_t length) const {
  if (length <= LineReader::kMaxLineBytes) return absl::OkStatus();
  return Refuse(absl::StrCat("is a line of ", length, " bytes; the most is ",
                             LineReader::kMaxLineBytes));
}

absl::StatusOr<bool> TextSource::NextLine(std::string* text,
                                          absl::Status* refused) {
  int64_t length = 0;
  absl::StatusOr<bool> more = lines_->Next(text, &length);
  *refused = RefuseLength(length);
  return more;
}

absl::StatusOr<bool> TextSource::NextJson(std::string* text,
                                          absl::Status* refused) {
  while (!giving_) {
    absl::StatusOr<bool> more = lines_->Next(&held_line_, &held_length_);
    if (!more.ok() || !*more) return more;  // the blank lines were the last
    held_ = held_length_ > LineReader::kMaxLineBytes ||
            held_line_.find_first_not_of(" \t\r") != std::string::npos;
    if (!held_) ++blank_lines_;
    giving_ = held_ || blank_lines_ == kMostBlankLines;
  }
  if (blank_lines_ > 0) {
    *refused = Refuse("is a blank line before others");
    --blank_lines_;
    giving_ = held_ || blank_lines_ > 0;
    return true;
  }
  held_ = giving_ = false;
  *refused = RefuseLength(held_length_);
  if (!refused->ok()) return true;
  auto found = JsonText(held_line_, input_.field);
  if (!found.ok()) *refused = Refuse(found.status().message());
  if (found.ok()) *text = *std::move(found);
  return true;
}

absl::StatusOr<bool> TextSource::NextRecord(std::string* text,
                                            absl::Status* refused) {
  std::string wrong;
  const absl::StatusOr<bool> more = records_->Next(lines_.get(), text, &wrong);
  if (absl::IsInvalidArgument(more.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(texts_read_), ": ", more.status().message()));
  }
  if (!wrong.empty()) *refused = Refuse(wrong);
  return more;
}

std::string TextSource::NameOf(int64_t index) const {
  if (lines_ == nullptr) return absl::StrCat("argument ", index + 1);
  if (records_ == nullptr) return absl::StrCat(name_, ":", index + 1);
  return absl::StrCat(name_, ": ", records_->noun(), " ", index + 1);
}

double TextSource::Progress() const {
  if (lines_ == nullptr) {
    return static_cast<double>(texts_read_) / input_.arguments.size();
  }
  const int64_t total = lines_->bytes_total();
  if (total <= 0) return -1;
  return std::min(1.0, static_cast<double>(lines_->bytes_read()) / total);
}

}  // namespace encoderd::ctl
