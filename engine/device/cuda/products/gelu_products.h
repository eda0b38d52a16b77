// Products with the erf GELU in their epilogue, where a library has them and
// they prove themselves next to the plain way (a product, then bias_gelu);
// everything else by the plain library. No clock has a say: the two have other
// bits.
//
// The plain way rounds the sum to 16 bits before GELU, the fused one does not.
// So they may differ by that rounding, by GELU's slope (at most 1.13), by the
// two roundings of the result and by the order of two float sums:
//   eps (1.13 |sum| + 2 |sum + bias|) + 1.13 bound of the sums' order.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_GELU_PRODUCTS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_GELU_PRODUCTS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/device/cuda/host/agreement.h"
#include "engine/device/cuda/products/product_proof.h"
#include "engine/device/cuda/products/products.h"
#include "engine/device/cuda/products/tuning.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

// The largest difference of `fused` from the plain way, in its bound, on the
// first rows of the proof: at most 1 is within it. `plain` computes the product
// without bias.
absl::StatusOr<double> GeluDifference(ProductProof* plain_proof,
                                      const Product& plain,
                                      ProductProof* fused_proof,
                                      const Product& fused);

// Thread rule: as ProductFactory, one thread at a time.
class GeluProducts : public ProductFactory {
 public:
  GeluProducts(std::unique_ptr<ProductFactory> plain,
               std::unique_ptr<ProductFactory> fused,
               std::shared_ptr<Runtime> runtime, int32_t ordinal,
               int64_t most_rows, std::shared_ptr<Agreement> agreement);

  // kBiasGeluErf: UNIMPLEMENTED where the plain way has to serve; a note, once
  // for each size, says why, with the figures. RESOURCE_EXHAUSTED: no memory to
  // prove it; DATA_LOSS: the device was lost; INTERNAL: cards disagree.
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args) override;
  std::string name() const override;
  int64_t workspace_bytes() const override {
    return std::max(plain_->workspace_bytes(), fused_->workspace_bytes());
  }
  void AllowGraphs(bool allowed) override {
    plain_->AllowGraphs(allowed);
    fused_->AllowGraphs(allowed);
  }
  std::vector<std::string> TakeNotes() override;

 private:
  // OK, or, UNIMPLEMENTED, why the plain way serves products like `args`; any
  // other error ends the start.
  absl::Status Prove(const ProductArgs& args);

  const std::unique_ptr<ProductFactory> plain_, fused_;
  const std::shared_ptr<Runtime> runtime_;
  const int32_t ordinal_;
  const int64_t most_rows_;
  const std::shared_ptr<Agreement> agreement_;
  std::map<ProductKey, absl::Status> proved_;
  std::vector<std::string> notes_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_GELU_PRODUCTS_H_
