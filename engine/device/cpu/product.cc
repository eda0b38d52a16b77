#include "engine/device/cpu/product.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "engine/device/cpu/aligned_buffer.h"

namespace encoderd {
namespace cpu {
namespace {

class OwnProduct : public Product {
 public:
  OwnProduct(const Kernels* kernels, const LinearWeights& weights,
             AlignedBuffer packed)
      : kernels_(kernels),
        in_(weights.weight.cols),
        out_(weights.weight.rows),
        packed_(std::move(packed)),
        bias_(weights.bias) {
    kernels_->pack(weights.weight.data.data(), in_, out_, packed_.floats());
  }

  int64_t scratch_bytes() const override { return 0; }
  absl::Status Run(const void* x, int64_t rows, void* y,
                   void* scratch) const override {
    kernels_->product(static_cast<const float*>(x), rows, packed_.floats(),
                      bias_.data(), in_, out_, static_cast<float*>(y));
    return absl::OkStatus();
  }

 private:
  const Kernels* const kernels_;
  const int64_t in_;
  const int64_t out_;
  const AlignedBuffer packed_;
  const std::vector<float> bias_;
};

class OwnProductFactory : public ProductFactory {
 public:
  explicit OwnProductFactory(const Kernels& kernels) : kernels_(&kernels) {}

  absl::StatusOr<std::unique_ptr<Product>> Create(
      const LinearWeights& weights) override {
    AlignedBuffer packed(
        kernels_->packed_floats(weights.weight.cols, weights.weight.rows) * 4);
    if (packed.data() == nullptr) {
      return absl::ResourceExhaustedError(
          "no memory for the packed weights of a layer");
    }
    return std::unique_ptr<Product>(
        absl::make_unique<OwnProduct>(kernels_, weights, std::move(packed)));
  }

 private:
  const Kernels* const kernels_;
};

}  // namespace

std::unique_ptr<ProductFactory> OwnProducts(const Kernels& kernels) {
  return absl::make_unique<OwnProductFactory>(kernels);
}

}  // namespace cpu
}  // namespace encoderd
