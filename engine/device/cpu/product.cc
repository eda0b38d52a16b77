#include "engine/device/cpu/product.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/io/half_floats.h"

namespace encoderd {
namespace cpu {

Product::Product(const Kernels& kernels, const LinearWeights& weights,
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

absl::StatusOr<Product> Product::Create(const Kernels& kernels,
                                        const LinearWeights& weights,
                                        Activation activation) {
  Product product(kernels, weights, activation);
  if (product.packed_.data() == nullptr || product.bias_.data() == nullptr) {
    return absl::ResourceExhaustedError(
        "no memory for the packed weights of a layer");
  }
  const HostMatrix& matrix = weights.weight;
  float* const packed = product.packed_.floats();
  if (kernels.bf16) {
    std::vector<uint16_t> narrow(matrix.data.size());
    std::transform(matrix.data.begin(), matrix.data.end(), narrow.begin(),
                   NarrowToBf16);
    kernels.pack(narrow.data(), matrix.cols, matrix.rows, packed);
  } else {
    kernels.pack(matrix.data.data(), matrix.cols, matrix.rows, packed);
  }
  float* const bias = product.bias_.floats();
  std::fill_n(bias, product.panels_ * kernels.panel_columns, 0.0f);
  std::copy(weights.bias.begin(), weights.bias.end(), bias);
  return product;
}

}  // namespace cpu
}  // namespace encoderd
