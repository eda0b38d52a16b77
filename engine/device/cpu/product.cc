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

int64_t Product::PackedBytes(const ProductKernels& kernels, int64_t out,
                             int64_t in) {
  constexpr int64_t kUnit = WeightMemory::kAlignment;
  return (4 * kernels.packed_floats(in, out) + kUnit - 1) / kUnit * kUnit;
}

Product::Product(const ProductKernels& kernels, const LinearWeights& weights,
                 Activation activation, const float* packed)
    : kernels_(&kernels),
      panels_((weights.weight.rows + kernels.panel_columns - 1) /
              kernels.panel_columns),
      bias_(4 * panels_ * kernels.panel_columns) {
  weights_ = {weights.weight.cols, weights.weight.rows, packed, bias_.floats(),
              activation};
}

absl::StatusOr<Product> Product::Create(const ProductKernels& kernels,
                                        const LinearWeights& weights,
                                        Activation activation,
                                        WeightMemory* memory) {
  const HostMatrix& matrix = weights.weight;
  float* const packed =
      memory->Take(PackedBytes(kernels, matrix.rows, matrix.cols));
  if (packed == nullptr) return NoMemory();
  Product product(kernels, weights, activation, packed);
  if (product.bias_.data() == nullptr) return NoMemory();
  const AlignedBuffer scratch(4 * kernels.panel_columns * matrix.cols);
  if (scratch.data() == nullptr) return NoMemory();
  kernels.pack(matrix.data.data(), matrix.cols, matrix.rows, packed,
               scratch.floats());
  float* const bias = product.bias_.floats();
  std::fill_n(bias, product.panels_ * kernels.panel_columns, 0.0f);
  std::copy(weights.bias.begin(), weights.bias.end(), bias);
  return product;
}

}  // namespace cpu
}  // namespace encoderd
