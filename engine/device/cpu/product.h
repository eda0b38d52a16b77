// y [rows,out] = activation(x [rows,in] W^T + b) with W packed once for the
// kernels of a device. Constant after creation; runs may be called from many
// threads. A row's bits depend neither on the other rows nor on how its columns
// are divided.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_H_
#define ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/weight_memory.h"
#include "engine/device/weights.h"

namespace encoderd {
namespace cpu {

// Most rows that one run is tuned for: those that stay in L2 with a panel of W.
constexpr int64_t kProductRows = 128;

class Product {
 public:
  // kernels, memory: outlive it; the packed weights are taken from `memory`.
  // RESOURCE_EXHAUSTED: no memory for them.
  static absl::StatusOr<Product> Create(const ProductKernels& kernels,
                                        const LinearWeights& weights,
                                        Activation activation,
                                        WeightMemory* memory);
  // What Create takes of `memory` for weights [out,in].
  static int64_t PackedBytes(const ProductKernels& kernels, int64_t out,
                             int64_t in);

  // Scratch of a run of up to `rows` rows, aligned to 64; runs of any product
  // may share it one after another.
  int64_t scratch_bytes(int64_t rows) const {
    return kernels_->product_scratch_bytes(rows, weights_.in, weights_.out);
  }

  // The columns of y come in panels.
  int64_t panels() const { return panels_; }
  // Of a row, in each run (ProductKernels).
  int64_t prepare_quarters() const { return kernels_->prepare_quarters; }
  // Some panels of y. x [rows,in], y [rows,out] in the element type; y must not
  // alias x.
  void Run(const Matrix& x, const Panels& panels, const Matrix& y,
           void* scratch) const {
    kernels_->product(weights_, x, panels, y, scratch);
  }

 private:
  Product(const ProductKernels& kernels, const LinearWeights& weights,
          Activation activation, const float* packed);

  const ProductKernels* kernels_;
  int64_t panels_;
  AlignedBuffer bias_;  // [panels * panel_columns], zeros past the end
  PackedWeights weights_;
};

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_PRODUCT_H_
