// Matrix products on a card, as an interface: cublaslt_products.cc is the real
// one; tests put loops on the host behind it.
//
// y [rows,out] = epilogue(x [rows,in] weight^T), weight [out,in], all of one
// element, or x and weight in e4m3; sums in float (fp32 without TF32). A row's
// bits never depend on other rows, nor on their number.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_PRODUCTS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_PRODUCTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

// kBiasGeluErf is the erf form of GELU; not every library of products has it.
enum class Epilogue { kNone, kBias, kBiasGeluTanh, kBiasRelu, kBiasGeluErf };

// What is multiplied: values of the element, or rows in e4m3 (ops.h), whose
// scales the sum is multiplied with before the epilogue.
enum class Operands { kElement, kE4m3 };

struct ProductArgs {
  DType element = DType::kF32;
  int64_t in = 0;   // a multiple of 8, in e4m3 of 16
  int64_t out = 0;  // a multiple of 8, in e4m3 of 16
  Epilogue epilogue = Epilogue::kNone;
  const void* weight = nullptr;  // [out,in], device memory
  // [out], of the element, for kBiasGeluErf float; null for kNone.
  const void* bias = nullptr;
  Operands operands = Operands::kElement;  // of x and weight; e4m3: 16 bits
  bool residual = false;                   // RunAdding is wanted, too
};

// In bytes, of x, y, weight and bias: what Runtime::Allocate gives, and what
// the libraries are told to expect.
inline constexpr int64_t kOperandAlignment = 256;
inline bool IsAligned(const void* operand) {
  return reinterpret_cast<uintptr_t>(operand) % kOperandAlignment == 0;
}

class Product {
 public:
  virtual ~Product() = default;
  // Thread-safe. x and y must not alias.
  virtual absl::Status Run(const void* x, int64_t rows, void* y,
                           const OpStream& stream) const = 0;
  // Whether RunAdding serves.
  virtual bool adds_residual() const { return false; }
  // y = epilogue(x weight^T) + residual [rows,out], of the element, in one
  // rounding; for an epilogue of a bias or none. residual may not be x or y.
  virtual absl::Status RunAdding(const void* x, int64_t rows,
                                 const void* residual, void* y,
                                 const OpStream& stream) const {
    return absl::UnimplementedError("this product adds no residual");
  }
};

class ProductFactory {
 public:
  virtual ~ProductFactory() = default;
  // Chooses the algorithm. Weights and bias are borrowed.
  virtual absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args) = 0;
  // "cuBLASLt 130000": for the device's name.
  virtual std::string name() const = 0;
  // Bytes of device memory that its products need in OpStream::workspace.
  virtual int64_t workspace_bytes() const { return 0; }
  // Whether CUDA graphs may run products when they are timed. Before Create.
  virtual void AllowGraphs(bool allowed) {}
  // For the log: how algorithms were chosen, since the last call.
  virtual std::vector<std::string> TakeNotes() { return {}; }
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_PRODUCTS_H_
