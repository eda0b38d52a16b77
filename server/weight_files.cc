#include "server/weight_files.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"

namespace encoderd {
namespace {

namespace fs = std::filesystem;

// 0 for what is no regular file. Follows links.
int64_t FileBytes(const fs::path& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

// Of one folder, without those in it.
int64_t BytesIn(const fs::path& folder) {
  const int64_t single = FileBytes(folder / "model.safetensors");
  if (single > 0) return single;
  int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (absl::StartsWith(name, "model-") &&
        absl::EndsWith(name, ".safetensors")) {
      bytes += FileBytes(file->path());
    }
  }
  return bytes;
}

}  // namespace

int64_t WeightFileBytes(const std::string& folder) {
  int64_t bytes = BytesIn(folder);
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end;
       bytes == 0 && !error && file != end; file.increment(error)) {
    if (absl::StartsWith(file->path().filename().string(), "0_")) {
      bytes = BytesIn(file->path());
    }
  }
  return bytes;
}

}  // namespace encoderd
