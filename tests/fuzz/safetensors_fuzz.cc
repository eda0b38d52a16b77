// A whole safetensors file in memory: whatever the bytes, the answer is a
// status, or a header whose every claim holds.
#include <cstdint>

#include "engine/io/safetensors_header.h"
#include "tests/fuzz/require.h"

using encoderd::Require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using encoderd::kSafetensorsPrefixBytes;
  if (size < kSafetensorsPrefixBytes) return 0;
  const char* bytes = reinterpret_cast<const char*>(data);
  const auto header_bytes = encoderd::SafetensorsHeaderBytes(bytes, size);
  if (!header_bytes.ok()) return 0;
  Require(*header_bytes >= 0 &&
          *header_bytes <= static_cast<int64_t>(size) - 8);
  const int64_t data_bytes = size - 8 - *header_bytes;
  const auto tensors = encoderd::ParseSafetensorsHeader(
      absl::string_view(bytes + 8, *header_bytes), data_bytes);
  if (!tensors.ok()) {
    Require(!tensors.status().message().empty());
    return 0;
  }
  int64_t covered = 0;
  for (size_t i = 0; i < tensors->size(); ++i) {
    const encoderd::TensorEntry& tensor = (*tensors)[i];
    Require(i == 0 || (*tensors)[i - 1].name < tensor.name);
    Require(0 <= tensor.begin && tensor.begin <= tensor.end);
    Require(tensor.end <= data_bytes);
    Require(tensor.num_values() >= 0);
    // The narrowest dtype has four bits.
    Require(tensor.num_values() <= 2 * (tensor.end - tensor.begin));
    covered += tensor.end - tensor.begin;
  }
  Require(covered == data_bytes);
  return 0;
}
