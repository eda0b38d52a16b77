#include "engine/base/tensor.h"

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

}  // namespace encoderd
