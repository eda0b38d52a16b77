#include "client/cpp/encoderctl/scales_file.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/npy.h"

namespace encoderd::ctl {

bool HasOwnScale(v1::Encoding encoding) {
  return encoding == v1::ENCODING_INT8 || encoding == v1::ENCODING_UINT8;
}

std::string ScalesPathOf(const std::string& output) {
  return absl::StrCat(output, ".scales.npy");
}

absl::Status CheckScalesFile(const std::string& path) {
  return CheckSideFile(
      path, kScaleLayout,
      " is not what encoderctl wrote there; move or remove it, or write to "
      "another --output");
}

void RemoveOldScales(const std::string& output, const std::string& scales) {
  std::error_code error;
  const auto steps = RowFile::RowsIn(scales, kScaleLayout);
  if (!steps.ok() || *steps < 1) return;
  const auto bytes =
      static_cast<int64_t>(std::filesystem::file_size(output, error));
  const int64_t columns = (bytes - kNpyHeaderBytes) / *steps;
  if (error || columns < 1) return;
  for (const char* const descr : {"|i1", "|u1"}) {
    const auto rows = RowFile::RowsIn(output, {descr, columns, 1});
    if (!rows.ok() || *rows != *steps) continue;
    std::filesystem::remove(scales, error);
    return;
  }
}

}  // namespace encoderd::ctl
