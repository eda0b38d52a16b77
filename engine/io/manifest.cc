#include "engine/io/manifest.h"

#include <filesystem>
#include <limits>
#include <set>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/io/file.h"
#include "engine/io/sha256.h"

namespace encoderd {
namespace {

constexpr int64_t kMaxManifestBytes = 1 << 20;
constexpr size_t kDigestLength = 64;
constexpr int kMaxFiles = 10000;

absl::Status BadLine(int64_t line, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(kManifestName, " line ", line, ": ", what));
}

// `status` of the file of a line. What may pass keeps its code.
absl::Status FileOfLine(int64_t line, const absl::Status& status) {
  const absl::Status bad = BadLine(line, status.message());
  const bool may_pass =
      absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
  return may_pass ? absl::Status(status.code(), bad.message()) : bad;
}

// "DIGEST  NAME" or "DIGEST *NAME"; adds NAME to *listed.
absl::Status CheckLine(const std::string& folder, int64_t number,
                       absl::string_view line, std::set<std::string>* listed) {
  const std::string digest =
      absl::AsciiStrToLower(line.substr(0, kDigestLength));
  if (digest.find_first_not_of("0123456789abcdef") != std::string::npos ||
      line.size() < kDigestLength + 3 || line[kDigestLength] != ' ' ||
      (line[kDigestLength + 1] != ' ' && line[kDigestLength + 1] != '*')) {
    return BadLine(number, "not 64 hexadecimal digits, two spaces and a name");
  }
  const absl::string_view name = line.substr(kDigestLength + 2);
  absl::StatusOr<File> file =
      File::Open(folder, name, std::numeric_limits<int64_t>::max());
  if (!file.ok()) return FileOfLine(number, file.status());
  absl::StatusOr<std::string> found = Sha256OfFile(*file);
  if (!found.ok()) return FileOfLine(number, found.status());
  if (*found != digest) {
    return BadLine(number,
                   absl::StrCat("the SHA-256 of ", Quote(name), " is ", *found,
                                "; the manifest expects ", digest));
  }
  listed->emplace(absl::StripPrefix(name, "./"));
  return absl::OkStatus();
}

bool MustBeListed(absl::string_view name) {
  return absl::EndsWith(name, ".json") || absl::EndsWith(name, ".txt") ||
         absl::EndsWith(name, ".safetensors");
}

// Every file below the folder that must be listed is.
absl::Status CheckAllListed(const std::string& folder,
                            const std::set<std::string>& listed) {
  namespace fs = std::filesystem;
  std::error_code error;
  // Follows links, as the reader does.
  fs::recursive_directory_iterator at(
      folder, fs::directory_options::follow_directory_symlink, error);
  int seen = 0;
  while (!error && at != fs::recursive_directory_iterator()) {
    if (++seen > kMaxFiles) {
      return absl::DataLossError(absl::StrCat("the folder of ", kManifestName,
                                              " has more than ", kMaxFiles,
                                              " files"));
    }
    const std::string name = at->path().lexically_relative(folder).string();
    if (MustBeListed(name) && listed.count(name) == 0) {
      return absl::DataLossError(
          absl::StrCat(kManifestName, " does not list ", Quote(name),
                       "; add its line, or remove the file"));
    }
    at.increment(error);
  }
  if (!error) return absl::OkStatus();
  return FileError(error.value(),
                   absl::StrCat("cannot list the folder of ", kManifestName,
                                ": ", error.message()));
}

}  // namespace

absl::StatusOr<int64_t> CheckManifest(const std::string& folder) {
  const absl::StatusOr<bool> exists = FileExists(folder, kManifestName);
  if (!exists.ok()) return exists.status();
  if (!*exists) return 0;
  absl::StatusOr<std::string> text =
      ReadWholeFile(folder, kManifestName, kMaxManifestBytes);
  if (!text.ok()) return text.status();
  int64_t number = 0;
  int64_t checked = 0;
  std::set<std::string> listed;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    if (line.empty()) continue;
    absl::Status status = CheckLine(folder, number, line, &listed);
    if (!status.ok()) return status;
    ++checked;
  }
  if (checked == 0) {
    return absl::DataLossError(absl::StrCat(kManifestName, " names no file"));
  }
  const absl::Status complete = CheckAllListed(folder, listed);
  if (!complete.ok()) return complete;
  return checked;
}

}  // namespace encoderd
