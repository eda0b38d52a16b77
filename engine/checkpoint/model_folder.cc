#include "engine/checkpoint/model_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/io/file.h"

namespace encoderd {
namespace {

namespace fs = std::filesystem;

// "owner/name", as model hubs have it, and no path that a person would write.
bool LooksLikeHubName(absl::string_view text) {
  return std::count(text.begin(), text.end(), '/') == 1 &&
         text.front() != '/' && text.front() != '.' && text.back() != '/';
}

absl::Status NoFolder(const std::string& folder, absl::string_view why) {
  const std::string start =
      absl::StrCat("no folder ", Quote(folder), ": ", why);
  if (absl::StartsWith(folder, "~")) {
    return absl::NotFoundError(
        absl::StrCat(start,
                     "; the shell expands ~ at the start of a word only: write "
                     "--model=\"$HOME/...\" or the whole path"));
  }
  if (LooksLikeHubName(folder)) {
    const std::string fetch =
        absl::EndsWith(folder, "/all-MiniLM-L6-v2")
            ? "deploy/fetch-model.sh fetches this one and prints its folder"
            : absl::StrCat("fetch it, such as with `hf download ", folder,
                           " --local-dir DIR`, and give DIR");
    return absl::NotFoundError(
        absl::StrCat(start,
                     "; if it is a name on the Hugging Face Hub, nothing is "
                     "downloaded from there: ",
                     fetch));
  }
  return absl::NotFoundError(absl::StrCat(
      start, "; give the folder that holds config.json and the weights"));
}

}  // namespace

absl::Status CheckModelFolder(const std::string& folder) {
  std::error_code error;
  const fs::file_status found = fs::status(folder, error);
  if (error) {
    const absl::Status status = FolderError(folder, error.value());
    if (!absl::IsNotFound(status)) return status;
  }
  if (!fs::exists(found)) return NoFolder(folder, error.message());
  if (!fs::is_directory(found)) {
    const std::string parent = fs::path(folder).parent_path().string();
    return absl::NotFoundError(absl::StrCat(
        Quote(folder), " is a file; give the folder that holds it: ",
        Quote(parent.empty() ? "." : parent)));
  }
  for (const char* name : {"config.json", "modules.json"}) {
    const absl::StatusOr<bool> exists = FileExists(folder, name);
    if (!exists.ok()) return exists.status();
    if (*exists) return absl::OkStatus();
  }
  const std::string start =
      absl::StrCat("no config.json in the folder ", Quote(folder), "; ");
  if (FileExists(folder, "snapshots").value_or(false)) {
    return absl::NotFoundError(absl::StrCat(
        start,
        "it is a cache of the Hugging Face Hub: give a folder of its "
        "snapshots/"));
  }
  return absl::NotFoundError(
      absl::StrCat(start,
                   "give the folder of a model in the Hugging Face or "
                   "sentence-transformers layout"));
}

}  // namespace encoderd
