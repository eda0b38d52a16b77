// Owners of what cuBLASLt is told about a product: its handle, the layouts of
// matrices, the operation. Only cublaslt_products.cc uses them.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUBLASLT_DESCRIPTIONS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUBLASLT_DESCRIPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "engine/device/cuda/products/cublaslt_library.h"
#include "engine/device/cuda/products/products.h"

namespace encoderd {
namespace cuda {

// Of y and bias; of x and weight.
cudaDataType ResultTypeOf(const ProductArgs& args);
cudaDataType OperandTypeOf(const ProductArgs& args);

// Where the scales of rows in e4m3 (ops.h) lie.
inline const float* ScalesOf(const void* data, int64_t rows, int64_t cols) {
  return reinterpret_cast<const float*>(static_cast<const char*>(data) +
                                        rows * cols);
}

// cuBLASLt's handle, shared by the products; it may be used by many threads.
struct Handle {
  explicit Handle(const CublasLt& functions) : lt(functions) {}
  ~Handle() {
    if (handle != nullptr) lt.cublasLtDestroy(handle);
  }
  // OK, or an error that names `what`.
  absl::Status Check(cublasStatus_t status, const char* what) const;

  const CublasLt& lt;
  cublasLtHandle_t handle = nullptr;
};

// Owner of a matrix's description, column-major [rows, cols].
class Layout {
 public:
  explicit Layout(const CublasLt& lt) : lt_(lt) {}
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  ~Layout() {
    if (layout_ != nullptr) lt_.cublasLtMatrixLayoutDestroy(layout_);
  }
  cublasStatus_t Make(cudaDataType type, int64_t rows, int64_t cols) {
    return lt_.cublasLtMatrixLayoutCreate(&layout_, type, rows, cols, rows);
  }
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  const CublasLt& lt_;
  cublasLtMatrixLayout_t layout_ = nullptr;
};

// Owner of a product's description.
class Description {
 public:
  explicit Description(const Handle& library) : library_(library) {}
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  ~Description() {
    if (operation_ != nullptr)
      library_.lt.cublasLtMatmulDescDestroy(operation_);
  }
  // x_scales: of rows in e4m3.
  absl::Status Make(const ProductArgs& args, const float* x_scales);
  cublasLtMatmulDesc_t get() const { return operation_; }

 private:
  absl::Status SetScales(const ProductArgs& args, const float* x_scales);
  template <typename T>
  absl::Status Set(cublasLtMatmulDescAttributes_t attribute, T value) {
    return library_.Check(library_.lt.cublasLtMatmulDescSetAttribute(
                              operation_, attribute, &value, sizeof(value)),
                          "describing a product");
  }

  const Handle& library_;
  cublasLtMatmulDesc_t operation_ = nullptr;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_CUBLASLT_DESCRIPTIONS_H_
