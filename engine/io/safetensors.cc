#include "engine/io/safetensors.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/io/half_floats.h"

namespace encoderd {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{64} << 30;
// Values that are read, then checked while a core's cache still has them.
constexpr int64_t kChunk = 1 << 16;

absl::Status InFile(const absl::Status& status, absl::string_view name) {
  return absl::Status(status.code(),
                      absl::StrCat(name, ": ", status.message()));
}

bool IsHalf(const TensorEntry& tensor) {
  return tensor.dtype == "F16" || tensor.dtype == "BF16";
}

absl::Status NotFinite(absl::string_view file, const TensorEntry& tensor,
                       float value, int64_t index) {
  return absl::DataLossError(
      absl::StrCat(file, ": tensor ", Quote(tensor.name), " has the value ",
                   value, " at index ", index, "; weights must be finite"));
}

}  // namespace

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& folder,
                                                      absl::string_view name) {
  absl::StatusOr<File> file = File::Open(folder, name, kMaxFileBytes);
  if (!file.ok()) return file.status();
  if (file->size() < kSafetensorsPrefixBytes) {
    return absl::DataLossError(absl::StrCat(name, " has ", file->size(),
                                            " bytes; a safetensors file has "
                                            "at least 8"));
  }
  char prefix[kSafetensorsPrefixBytes];
  absl::Status read = file->ReadAt(0, prefix, kSafetensorsPrefixBytes);
  if (!read.ok()) return read;
  const absl::StatusOr<int64_t> header_bytes =
      SafetensorsHeaderBytes(prefix, file->size());
  if (!header_bytes.ok()) return InFile(header_bytes.status(), name);

  std::string json(static_cast<size_t>(*header_bytes), '\0');
  read = file->ReadAt(kSafetensorsPrefixBytes, json.data(), *header_bytes);
  if (!read.ok()) return read;
  const int64_t data_begin = kSafetensorsPrefixBytes + *header_bytes;
  absl::StatusOr<std::vector<TensorEntry>> tensors =
      ParseSafetensorsHeader(json, file->size() - data_begin);
  if (!tensors.ok()) return InFile(tensors.status(), name);
  return SafetensorsFile(*std::move(file), data_begin, *std::move(tensors));
}

const TensorEntry* SafetensorsFile::Find(absl::string_view name) const {
  const auto found =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const TensorEntry& entry, absl::string_view wanted) {
                         return entry.name < wanted;
                       });
  if (found == tensors_.end() || found->name != name) return nullptr;
  return &*found;
}

absl::Status SafetensorsFile::ReadBytes(const TensorEntry& tensor,
                                        int64_t offset, void* out,
                                        int64_t count) const {
  const int64_t size = tensor.end - tensor.begin;
  if (offset < 0 || count < 0 || offset > size || count > size - offset) {
    return absl::InternalError(absl::StrCat("bytes ", offset, "+", count,
                                            " of tensor ", Quote(tensor.name),
                                            ", which has ", size));
  }
  return file_.ReadAt(data_begin_ + tensor.begin + offset, out, count);
}

absl::Status SafetensorsFile::ReadFloats(const TensorEntry& tensor,
                                         float* out) const {
  const bool is_half = IsHalf(tensor);
  if (!is_half && tensor.dtype != "F32") {
    return absl::UnimplementedError(absl::StrCat(
        file_.name(), ": tensor ", Quote(tensor.name), " has the dtype ",
        tensor.dtype, "; weights are F32, F16 or BF16"));
  }
  const auto widen = tensor.dtype == "F16" ? &WidenF16 : &WidenBF16;
  const int64_t values = tensor.num_values(), bytes = is_half ? 2 : 4;
  std::vector<uint16_t> halves(is_half ? std::min(kChunk, values) : 0);
  for (int64_t i = 0; i < values; i += kChunk) {
    const int64_t count = std::min(kChunk, values - i);
    void* const read_to = is_half ? static_cast<void*>(halves.data()) : out + i;
    const absl::Status read =
        ReadBytes(tensor, i * bytes, read_to, count * bytes);
    if (!read.ok()) return read;
    if (is_half) widen(halves.data(), count, out + i);
    const int64_t bad = FindNonFinite(out + i, count);
    if (bad >= 0) return NotFinite(file_.name(), tensor, out[i + bad], i + bad);
  }
  return absl::OkStatus();
}

absl::Status SafetensorsFile::ReadHalves(const TensorEntry& tensor,
                                         uint16_t* out) const {
  if (!IsHalf(tensor)) {
    return absl::InternalError(absl::StrCat(
        "halves of tensor ", Quote(tensor.name), " of ", tensor.dtype));
  }
  const int64_t values = tensor.num_values();
  const absl::Status read = ReadBytes(tensor, 0, out, values * 2);
  if (!read.ok()) return read;
  const bool is_f16 = tensor.dtype == "F16";
  const int64_t bad =
      is_f16 ? FindNonFiniteF16(out, values) : FindNonFiniteBF16(out, values);
  if (bad < 0) return absl::OkStatus();
  float value;
  (is_f16 ? WidenF16 : WidenBF16)(out + bad, 1, &value);
  return NotFinite(file_.name(), tensor, value, bad);
}

}  // namespace encoderd
