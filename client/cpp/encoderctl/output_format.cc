#include "client/cpp/encoderctl/output_format.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace encoderd::ctl {
namespace {

struct Ending {
  absl::string_view ending;
  absl::string_view format;  // empty: of no command
};

constexpr Ending kEndings[] = {
    {".npy", "npy"},  {".jsonl", "jsonl"}, {".ndjson", "jsonl"},
    {".json", ""},    {".csv", ""},        {".tsv", ""},
    {".npz", ""},     {".parquet", ""},    {".arrow", ""},
    {".feather", ""}, {".h5", ""},         {".safetensors", ""},
    {".pkl", ""},     {".pickle", ""},     {".xlsx", ""},
    {".gz", ""},      {".bz2", ""},        {".xz", ""},
    {".zst", ""},     {".zip", ""},        {".pt", ""},
    {".bin", ""},
};

bool Has(const std::vector<std::string>& formats, absl::string_view format) {
  return std::find(formats.begin(), formats.end(), format) != formats.end();
}

}  // namespace

absl::StatusOr<std::string> OutputFormat(
    absl::string_view output, absl::string_view format,
    const std::vector<std::string>& formats, bool one_value) {
  const bool npy = absl::EndsWithIgnoreCase(output, ".npy");
  if (format == "npy" && output == "-") {
    return absl::InvalidArgumentError(
        "--format=npy needs --output=FILE: the shape is written into the "
        "file's head at the end");
  }
  if (format != "auto") {
    const bool jsonl = absl::EndsWithIgnoreCase(output, ".jsonl") ||
                       absl::EndsWithIgnoreCase(output, ".ndjson");
    const bool misnamed = format == "npy" ? jsonl : npy;
    if (!misnamed) return std::string(format);
    return absl::InvalidArgumentError(
        absl::StrCat("--output=", output, " takes no --format=", format,
                     ": name a file with another ending"));
  }
  for (const Ending& ending : kEndings) {
    if (!absl::EndsWithIgnoreCase(output, ending.ending)) continue;
    if (Has(formats, ending.format)) return std::string(ending.format);
    if (one_value && ending.ending == ".json") return "jsonl";
    return absl::InvalidArgumentError(absl::StrCat(
        "--output=", output, ": ", ending.ending,
        " cannot be written; available: ", Has(formats, "npy") ? ".npy, " : "",
        ".jsonl, .ndjson", one_value ? ", .json" : "",
        ", and text under another ending"));
  }
  // Such as .npy.tmp, to be renamed later.
  const std::string name =
      absl::AsciiStrToLower(output.substr(output.rfind('/') + 1));
  for (const auto& [ending, kind] :
       {std::pair(".npy.", "npy"), std::pair(".jsonl.", "jsonl"),
        std::pair(".ndjson.", "jsonl")}) {
    if (!absl::StrContains(name, ending) || !Has(formats, kind)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--output=", output, " does not end in .", kind,
                     ": add --format=", kind, " or --format=text"));
  }
  return "text";
}

}  // namespace encoderd::ctl
