#include "engine/base/tensor.h"

#include <utility>

#include "engine/io/half_floats.h"

namespace encoderd {

const char* DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "fp32";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "fp16";
  }
  return "unknown";
}

int64_t DTypeBytes(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

HostTable::HostTable(int64_t rows, int64_t cols, DType dtype)
    : rows(rows),
      cols(cols),
      dtype(dtype),
      floats(dtype == DType::kF32 ? rows * cols : 0),
      halves(dtype == DType::kF32 ? 0 : rows * cols) {}

HostTable::HostTable(HostMatrix matrix)
    : rows(matrix.rows), cols(matrix.cols), floats(std::move(matrix.data)) {}

HostMatrix HostTable::Widened() const {
  if (dtype == DType::kF32) return {rows, cols, floats};
  HostMatrix matrix = {rows, cols, std::vector<float>(halves.size())};
  const auto widen = dtype == DType::kF16 ? WidenF16 : WidenBF16;
  widen(halves.data(), rows * cols, matrix.data.data());
  return matrix;
}

const void* HostTable::data() const {
  if (dtype == DType::kF32) return floats.data();
  return halves.data();
}

}  // namespace encoderd
