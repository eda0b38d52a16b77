// Host tensors. Rank two only: a vector is a span, everything else is rows
// times columns, row-major.
#ifndef ENCODERD_ENGINE_BASE_TENSOR_H_
#define ENCODERD_ENGINE_BASE_TENSOR_H_

#include <cstdint>
#include <vector>

#include "engine/base/kinds.h"

namespace encoderd {

// "fp32", "bf16", "fp16": the words of --dtype.
const char* DTypeName(DType dtype);
int64_t DTypeBytes(DType dtype);

// Owner of a host matrix of floats [rows, cols].
struct HostMatrix {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<float> data;  // rows * cols values, row-major

  const float* Row(int64_t r) const { return data.data() + r * cols; }
};

// Owner of a table [rows, cols] in the dtype that its file has: floats, or the
// bits of half floats, never both.
struct HostTable {
  HostTable() = default;
  // Of zeros.
  HostTable(int64_t rows, int64_t cols, DType dtype);
  HostTable(HostMatrix matrix);  // NOLINT: a matrix is a table of floats

  // The same values as floats (exact).
  HostMatrix Widened() const;
  const void* data() const;

  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
  std::vector<float> floats;     // rows * cols values, row-major: of kF32
  std::vector<uint16_t> halves;  // of kBF16 and kF16
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_TENSOR_H_
