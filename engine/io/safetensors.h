// A safetensors file, open for reading (format: safetensors_header.h).
//
// The header is checked as a whole by Open; tensor data is read by position
// into the caller's memory, never mapped. Thread rule: constant after Open.
#ifndef ENCODERD_ENGINE_IO_SAFETENSORS_H_
#define ENCODERD_ENGINE_IO_SAFETENSORS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/io/file.h"
#include "engine/io/safetensors_header.h"

namespace encoderd {

class SafetensorsFile {
 public:
  // Errors of File::Open; DATA_LOSS for an invalid header.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& folder,
                                              absl::string_view name);

  const File& file() const { return file_; }
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  const TensorEntry* Find(absl::string_view name) const;  // or nullptr

  // `count` bytes of the tensor from its byte `offset`; both must lie in it.
  absl::Status ReadBytes(const TensorEntry& tensor, int64_t offset, void* out,
                         int64_t count) const;
  // All values into out [num_values], F16 and BF16 widened (exact).
  // UNIMPLEMENTED for other dtypes; DATA_LOSS for a value that is NaN or
  // infinite (tensor and index named) and for a file that ends early.
  absl::Status ReadFloats(const TensorEntry& tensor, float* out) const;
  // All values of an F16 or BF16 tensor into out [num_values], as bits;
  // INTERNAL for another, else errors as of ReadFloats.
  absl::Status ReadHalves(const TensorEntry& tensor, uint16_t* out) const;

 private:
  SafetensorsFile(File file, int64_t data_begin,
                  std::vector<TensorEntry> tensors)
      : file_(std::move(file)),
        data_begin_(data_begin),
        tensors_(std::move(tensors)) {}

  File file_;
  int64_t data_begin_;
  std::vector<TensorEntry> tensors_;  // by name
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_IO_SAFETENSORS_H_
