#include "client/cpp/encoderctl/input_kind.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace encoderd::ctl {
namespace {

// Files that are not read, and what to do about them.
struct Refusal {
  absl::string_view ending;
  absl::string_view what;
  absl::string_view remedy;  // of a compressed one the program
  bool compressed = false;
  absl::string_view first_bytes = "";  // empty: not told by them; ?: any byte
};

constexpr absl::string_view kConvert =
    "convert it to .csv or .jsonl, such as pandas' to_json(FILE, "
    "orient=\"records\", lines=True)";

constexpr Refusal kRefusals[] = {
    {".gz", "a compressed file", "gzip -dc", true, "\x1f\x8b"},
    {".bz2", "a compressed file", "bzip2 -dc", true, "BZh?1AY&SY"},
    {".xz", "a compressed file", "xz -dc", true,
     "\xfd"
     "7zXZ"},
    {".zst", "a compressed file", "zstd -dc", true, "\x28\xb5\x2f\xfd"},
    {".zip", "a compressed file", "unzip -p", true, "PK\x03\x04"},
    {".parquet", "a Parquet file", kConvert, false, "PAR1\x15"},
    {".arrow", "an Arrow file", kConvert, false,
     absl::string_view("ARROW1\0\0", 8)},
    {".feather", "a Feather file", kConvert},
    {".xlsx", "a spreadsheet", "save it as .csv (UTF-8)"},
    {".xls", "a spreadsheet", "save it as .csv (UTF-8)"},
    {".ods", "a spreadsheet", "save it as .csv (UTF-8)"},
    {".npy", "an array of numbers", "give the file of the texts", false,
     "\x93NUMPY"},
    {".pkl", "a pickle, which can run code", kConvert},
    {".pickle", "a pickle, which can run code", kConvert},
    {".pdf", "a PDF", "convert it to text, such as pdftotext FILE", false,
     "%PDF-?."},
    {".docx", "a document", "save it as plain text"},
};

// Whether `bytes`, the first of an input, are those of such a file, as far as
// both go. Text may begin with the letters of one, not with all its bytes.
bool Agree(const Refusal& refusal, absl::string_view bytes) {
  const absl::string_view wanted = refusal.first_bytes.substr(0, bytes.size());
  return std::equal(
      wanted.begin(), wanted.end(), bytes.begin(),
      [](char want, char byte) { return want == '?' || want == byte; });
}

constexpr size_t kWidestBytes = 4;  // of a letter
constexpr size_t kBytesLookedAt = 4096;
constexpr size_t kManyLetters = 8;  // that no short list separated by NULs has

// Whether `bytes` are likely UTF-16, with the high byte of each unit at `high`
// (0 or 1). The high byte of Latin letters, blanks and line ends is 0. In a
// list separated by NULs the zeros lie elsewhere, and a line end has none
// next to it.
bool AreWide(absl::string_view bytes, size_t high) {
  size_t letters = 0, nuls = 0, blanks = 0, line_ends = 0;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const char first = bytes[i + high];
    const char second = bytes[i + 1 - high];
    ++letters;
    if (second == 0 || first == '\n') return false;
    if (first != 0 && second == '\n') return false;
    if (first != 0) continue;
    ++nuls;
    blanks += second == ' ' ? 1 : 0;
    line_ends += second == '\n' ? 1 : 0;
  }
  if (line_ends > 0 && line_ends + blanks == nuls) return true;
  return 4 * nuls >= 3 * letters && (line_ends > 0 || nuls >= kManyLetters);
}

// What iconv calls the encoding of an input whose first letters take two or
// four bytes each; empty for any other. iconv takes a byte order mark away, and
// the order from it, only under the name without an order.
absl::string_view WideEncoding(absl::string_view bytes) {
  const absl::string_view four = bytes.substr(0, kWidestBytes);
  if (four == absl::string_view("\xff\xfe\0\0", 4) ||
      four == absl::string_view("\0\0\xfe\xff", 4))
    return "UTF-32";
  if (absl::StartsWith(bytes, "\xff\xfe")) return "UTF-16";
  if (absl::StartsWith(bytes, "\xfe\xff")) return "UTF-16";
  if (bytes.size() < 2) return "";
  // Letters of the basic alphabet, without a mark.
  if (four.size() == kWidestBytes && four[1] == 0 && four[2] == 0) {
    if (four[0] != 0 && four[3] == 0) return "UTF-32LE";
    if (four[0] == 0 && four[3] != 0) return "UTF-32BE";
  }
  const absl::string_view start = bytes.substr(0, kBytesLookedAt);
  if (AreWide(start, 1)) return "UTF-16LE";
  return AreWide(start, 0) ? "UTF-16BE" : "";
}

// The format of texts under this name; unset if its ending says nothing.
std::optional<InputFormat> KnownFormat(absl::string_view file) {
  for (const InputFormat format : {InputFormat::kJsonl, InputFormat::kCsv,
                                   InputFormat::kTsv, InputFormat::kJson}) {
    if (absl::EndsWithIgnoreCase(file, absl::StrCat(".", WordOf(format)))) {
      return format;
    }
  }
  if (absl::EndsWithIgnoreCase(file, ".ndjson")) return InputFormat::kJsonl;
  return std::nullopt;
}

// `inner`: the file's name without the ending that says how it is compressed.
absl::Status Refuse(absl::string_view file, absl::string_view inner,
                    const Refusal& refusal) {
  if (!refusal.compressed) {
    return absl::InvalidArgumentError(absl::StrCat("--input does not read ",
                                                   file, ", ", refusal.what,
                                                   ": ", refusal.remedy));
  }
  // A pipe has no ending: without the format its records would be lines.
  const std::optional<InputFormat> format = KnownFormat(inner);
  return absl::InvalidArgumentError(
      absl::StrCat("--input does not read ", file, ", ", refusal.what,
                   ": decompress it into a pipe: ", refusal.remedy,
                   " FILE | encoderctl ... --input_format=",
                   format.has_value()
                       ? WordOf(*format)
                       : "lines (or jsonl, csv, tsv, json: what FILE holds)"));
}

}  // namespace

absl::string_view WordOf(InputFormat format) {
  switch (format) {
    case InputFormat::kAuto:
      break;
    case InputFormat::kLines:
      return "lines";
    case InputFormat::kJsonl:
      return "jsonl";
    case InputFormat::kCsv:
      return "csv";
    case InputFormat::kTsv:
      return "tsv";
    case InputFormat::kJson:
      return "json";
  }
  return "auto";
}

absl::StatusOr<InputFormat> FormatOfFile(absl::string_view file) {
  for (const Refusal& refusal : kRefusals) {
    if (!absl::EndsWithIgnoreCase(file, refusal.ending)) continue;
    return Refuse(file, file.substr(0, file.size() - refusal.ending.size()),
                  refusal);
  }
  return KnownFormat(file).value_or(InputFormat::kLines);
}

bool LooksLikeFileName(absl::string_view text) {
  if (text.find_first_of(" \t\n") != absl::string_view::npos) return false;
  return KnownFormat(text).has_value() ||
         absl::EndsWithIgnoreCase(text, ".txt");
}

absl::Status CheckFirstBytes(absl::string_view name, absl::string_view bytes) {
  for (const Refusal& refusal : kRefusals) {
    const size_t wanted = refusal.first_bytes.size();
    if (wanted > 0 && bytes.size() >= wanted && Agree(refusal, bytes)) {
      return Refuse(name, name, refusal);
    }
  }
  const absl::string_view encoding = WideEncoding(bytes);
  if (encoding.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, " is ", encoding.substr(0, 6),
      "; convert it, such as with iconv -f ", encoding, " -t UTF-8"));
}

bool NeedsMoreFirstBytes(absl::string_view bytes) {
  if (bytes.empty()) return false;
  for (const Refusal& refusal : kRefusals) {
    if (bytes.size() < refusal.first_bytes.size() && Agree(refusal, bytes)) {
      return true;
    }
  }
  if (bytes.size() >= kWidestBytes) return false;
  return bytes[0] == '\xfe' || bytes[0] == '\xff' ||
         absl::StrContains(bytes, '\0');
}

bool LooksLikeJson(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  for (const absl::string_view start : {"{\"", "[\"", "[{"}) {
    if (absl::StartsWith(line, start)) return true;
  }
  if (line == "[" || line == "{") return true;
  // A bare number or word is as likely a text.
  if (line.empty() || (line[0] != '"' && line[0] != '[' && line[0] != '{')) {
    return false;
  }
  return nlohmann::json::accept(line.begin(), line.end());
}

bool LooksLikeTable(absl::string_view line, absl::string_view field,
                    char separator) {
  bool found = false;
  size_t columns = 0;
  for (absl::string_view name : absl::StrSplit(line, separator)) {
    ++columns;
    if (absl::ConsumePrefix(&name, "\"")) absl::ConsumeSuffix(&name, "\"");
    if (name.empty() || name[0] == ' ') return false;
    found |= name == field;
  }
  return found && columns > 1;
}

}  // namespace encoderd::ctl
