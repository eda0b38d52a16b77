// products.h by cuBLASLt, which is loaded when it is first needed: it is larger
// than everything else together, and a program must start where it is not.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUBLASLT_PRODUCTS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUBLASLT_PRODUCTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/device/cuda/products/algorithms.h"
#include "engine/device/cuda/products/cublaslt_library.h"

namespace encoderd {
namespace cuda {

// UNAVAILABLE, naming the library and why, where it cannot be loaded. For the
// device that the calling thread uses; an Algorithm is a cublasLtMatmulAlgo_t.
absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> NewCublasLtLibrary();

// The same by other functions, which must outlive it.
absl::StatusOr<std::unique_ptr<AlgorithmLibrary>> NewCublasLtLibrary(
    const CublasLt& functions);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUBLASLT_PRODUCTS_H_
