// cuBLASLt's functions, found in the library at run time. Only
// cublaslt_products.cc and tests call through this table.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUBLASLT_LIBRARY_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUBLASLT_LIBRARY_H_

#include <cublasLt.h>

#include "absl/status/statusor.h"

namespace encoderd {
namespace cuda {

#define ENCODERD_CUBLASLT_FUNCTIONS(X)    \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetStatusName)                \
  X(cublasLtGetVersion)                   \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulAlgoCheck)              \
  X(cublasLtMatmulAlgoConfigGetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)

struct CublasLt {
#define ENCODERD_MEMBER(name) decltype(&::name) name = nullptr;
  ENCODERD_CUBLASLT_FUNCTIONS(ENCODERD_MEMBER)
#undef ENCODERD_MEMBER
};

// Loaded once for the process and kept. Thread-safe.
absl::StatusOr<const CublasLt*> LoadCublasLt();

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUBLASLT_LIBRARY_H_
