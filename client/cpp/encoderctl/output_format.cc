#include "client/cpp/encoderctl/output_format.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace encoderd::ctl {
namespace {

struct Ending {
  absl::string_view ending;
  std::optional<OutputFormat> format;  // unset: of no command
};

constexpr Ending kEndings[] = {
    {".npy", OutputFormat::kNpy},
    {".jsonl", OutputFormat::kJsonl},
    {".ndjson", OutputFormat::kJsonl},
    {".json", std::nullopt},
    {".csv", std::nullopt},
    {".tsv", std::nullopt},
    {".npz", std::nullopt},
    {".parquet", std::nullopt},
    {".arrow", std::nullopt},
    {".feather", std::nullopt},
    {".h5", std::nullopt},
    {".safetensors", std::nullopt},
    {".pkl", std::nullopt},
    {".pickle", std::nullopt},
    {".xlsx", std::nullopt},
    {".gz", std::nullopt},
    {".bz2", std::nullopt},
    {".xz", std::nullopt},
    {".zst", std::nullopt},
    {".zip", std::nullopt},
    {".pt", std::nullopt},
    {".bin", std::nullopt},
};

bool Has(const std::vector<OutputFormat>& formats,
         std::optional<OutputFormat> format) {
  return std::find(formats.begin(), formats.end(), format) != formats.end();
}

}  // namespace

absl::string_view WordOf(OutputFormat format) {
  switch (format) {
    case OutputFormat::kAuto:
      break;
    case OutputFormat::kText:
      return "text";
    case OutputFormat::kJsonl:
      return "jsonl";
    case OutputFormat::kNpy:
      return "npy";
  }
  return "auto";
}

absl::StatusOr<OutputFormat> ChooseFormat(
    absl::string_view output, OutputFormat format,
    const std::vector<OutputFormat>& formats, bool one_value) {
  const bool npy = absl::EndsWithIgnoreCase(output, ".npy");
  if (format == OutputFormat::kNpy && output == "-") {
    return absl::InvalidArgumentError(
        "--format=npy needs --output=FILE: the shape is written into the "
        "file's head at the end");
  }
  if (format != OutputFormat::kAuto) {
    const bool jsonl = absl::EndsWithIgnoreCase(output, ".jsonl") ||
                       absl::EndsWithIgnoreCase(output, ".ndjson");
    const bool misnamed = format == OutputFormat::kNpy ? jsonl : npy;
    if (!misnamed) return format;
    return absl::InvalidArgumentError(
        absl::StrCat("--output=", output, " takes no --format=", WordOf(format),
                     ": name a file with another ending"));
  }
  for (const Ending& ending : kEndings) {
    if (!absl::EndsWithIgnoreCase(output, ending.ending)) continue;
    if (Has(formats, ending.format)) return *ending.format;
    if (one_value && ending.ending == ".json") return OutputFormat::kJsonl;
    return absl::InvalidArgumentError(absl::StrCat(
        "--output=", output, ": ", ending.ending,
        " cannot be written; available: ",
        Has(formats, OutputFormat::kNpy) ? ".npy, " : "", ".jsonl, .ndjson",
        one_value ? ", .json" : "", ", and text under another ending"));
  }
  // Such as .npy.tmp, to be renamed later.
  const std::string name =
      absl::AsciiStrToLower(output.substr(output.rfind('/') + 1));
  for (const auto& [ending, kind] :
       {std::pair(".npy.", OutputFormat::kNpy),
        std::pair(".jsonl.", OutputFormat::kJsonl),
        std::pair(".ndjson.", OutputFormat::kJsonl)}) {
    if (!absl::StrContains(name, ending) || !Has(formats, kind)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--output=", output, " does not end in .", WordOf(kind),
                     ": add --format=", WordOf(kind), " or --format=text"));
  }
  return OutputFormat::kText;
}

}  // namespace encoderd::ctl
