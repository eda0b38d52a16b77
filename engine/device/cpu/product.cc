#include "engine/device/cpu/product.h"

#include <algorithm>

namespace encoderd {
namespace cpu {
namespace {

absl::Status NoMemory() {
  return absl::ResourceExhaustedError(
      "no memory for the packed weights of a layer");
}

}  // namespace

Product::Product(const ProductKernels& kernels, const LinearWeights& weights,
                 Activation activation)
    : kernels_(&kernels),
      panels_((weights.weight.rows + kernels.panel_columns - 1) /
              kernels.panel_columns),
      packed_(4 *
              kernels.packed_floats(weights.weight.cols, weights.weight.rows)),
      bias_(4 * panels_ * kernels.panel_columns) {
  weights_ = {weights.weight.cols, weights.weight.rows, packed_.floats(),
              bias_.floats(), activation};
}

absl::StatusOr<Product> Product::Create(const ProductKernels& kernels,
                                        const LinearWeights& weights,
                                        Activation activation) {
  Product product(kernels, weights, activation);
  if (product.packed_.data() == nullptr || product.bias_.data() == nullptr)
    return NoMemory();
  const HostMatrix& matrix = weights.weight;
  const AlignedBuffer scratch(4 * kernels.panel_columns * matrix.cols);
  if (scratch.data() == nullptr) return NoMemory();
  kernels.pack(matrix.data.data(), matrix.cols, matrix.rows,
               product.packed_.floats(), scratch.floats());
  float* const bias = product.bias_.floats();
  std::fill_n(bias, product.panels_ * kernels.panel_columns, 0.0f);
  std::copy(weights.bias.begin(), weights.bias.end(), bias);
  return product;
}

}  // namespace cpu
}  // namespace encoderd
