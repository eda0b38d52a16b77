// y [rows,out] = x [rows,in] W^T + b with W packed once: the matrix products.
//
// Two kinds. OneDnnProduct (matmul.cc) where oneDNN's packed kernels keep a
// row's bits the same for any number of rows: AVX-512, float and bf16. The
// other (product.cc) runs this project's own kernel, float only, on every
// other CPU, where oneDNN's rows do depend on each other. Constant after
// creation; Run and RunColumns may be called from many threads, each with its
// own scratch.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_H_
#define ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/tensor.h"
#include "engine/device/cpu/int8_kernels.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/weights.h"

namespace encoderd {
namespace cpu {

class Product {
 public:
  virtual ~Product() = default;

  // Scratch of Run; runs of any product may share one after another.
  virtual int64_t scratch_bytes() const = 0;
  // x [rows,in], y [rows,out] in the element type; y must not alias x. Runs in
  // the calling thread alone. scratch: aligned to 64. INTERNAL: oneDNN failed.
  virtual absl::Status Run(const void* x, int64_t rows, void* y,
                           void* scratch) const = 0;

  // Few rows cost little compared with reading W, so threads that share them
  // share its columns: in this many equal parts, each with the bits that Run
  // gives it. 1: in no parts.
  virtual int32_t column_parts() const = 0;
  // As Run, one of these parts; rows: at most kFewRows. y [rows,out / parts].
  virtual absl::Status RunColumns(const void* x, int64_t rows, int32_t part,
                                  void* y, void* scratch) const = 0;
};

// Makes products and remembers what products of one shape can share.
class ProductFactory {
 public:
  virtual ~ProductFactory() = default;
  virtual absl::StatusOr<std::unique_ptr<Product>> Create(
      const LinearWeights& weights) = 0;
};

// dtype: kF32 or kBF16. Not thread-safe: one thread prepares a model.
std::unique_ptr<ProductFactory> OneDnnProducts(DType dtype);

// `kernels` must have a product.
std::unique_ptr<ProductFactory> OwnProducts(const Kernels& kernels);

// bf16 in and out, int8 in between (int8_kernels.h) for weights that allow it;
// the other weights are the others'.
std::unique_ptr<ProductFactory> Int8Products(
    const Int8Kernels& kernels, std::unique_ptr<ProductFactory> others);

// Most rows that one Run is tuned for; more are taken in blocks of this many.
constexpr int64_t kProductRows = 128;

// Most rows whose products threads share by columns.
constexpr int64_t kFewRows = 32;

// Into how many equal parts to divide `blocks` blocks of columns: 12 at most,
// so that a part is worth its start; an even number, which two threads share
// evenly, unless there are more than twice as many odd ones. More where 2 to 12
// divide nothing better than 2.
int32_t ColumnParts(int64_t blocks);

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_H_
