// The header of a safetensors file, checked before it is used.
//
//   bytes 0..7      N, the header's length, little-endian
//   bytes 8..8+N    JSON: {"name": {"dtype": "F32", "shape": [2,3],
//                   "data_offsets": [begin, end]}, ...,
//                   "__metadata__": {"key": "text", ...}}; spaces may follow
//   the rest        the tensors' bytes; offsets count from here
//
// Rejected in addition to what the reference reader rejects: headers over 16
// MiB (reference: 100 MB), members of a tensor other than those three, rank
// over 8, over 65,536 tensors. Pure functions over memory.
#ifndef ENCODERD_ENGINE_IO_SAFETENSORS_HEADER_H_
#define ENCODERD_ENGINE_IO_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace encoderd {

constexpr int64_t kMaxSafetensorsHeaderBytes = 16 << 20;
constexpr int64_t kMaxSafetensorsTensors = 65536;
constexpr int kMaxSafetensorsRank = 8;
constexpr int64_t kSafetensorsPrefixBytes = 8;

struct TensorEntry {
  std::string name;
  std::string dtype;           // as in the file: "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;  // rank 0: one value
  int64_t begin = 0;           // byte range in the data section
  int64_t end = 0;

  int64_t num_values() const;  // never overflows in a checked entry
};

// "[30522,384]"
std::string ShapeText(const std::vector<int64_t>& shape);

// The header's length from a file's first eight bytes. DATA_LOSS if it does not
// fit the file or the limit.
absl::StatusOr<int64_t> SafetensorsHeaderBytes(const char prefix[8],
                                               int64_t file_bytes);

// Tensors sorted by name. data_bytes: length of the data section. DATA_LOSS
// unless every dtype is known, size = shape x dtype without overflow, and the
// ranges cover the data section without hole, overlap or tail.
absl::StatusOr<std::vector<TensorEntry>> ParseSafetensorsHeader(
    absl::string_view json, int64_t data_bytes);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_SAFETENSORS_HEADER_H_
