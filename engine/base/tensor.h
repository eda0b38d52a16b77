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

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_TENSOR_H_
