#include "engine/device/cpu/product.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "engine/device/cpu/aligned_buffer.h"

namespace encoderd {
namespace cpu {

int32_t ColumnParts(int64_t blocks) {
  constexpr int32_t kMost = 12, kFew = 3;
  int32_t even = 1, odd = 1;
  for (int32_t parts = 2; parts <= kMost; ++parts) {
    if (blocks % parts == 0) (parts % 2 == 0 ? even : odd) = parts;
  }
  const int32_t best = odd > 2 * even ? odd : even;
  if (best > kFew) return best;
  for (int32_t parts = kMost + 1; parts <= blocks; ++parts) {
    if (blocks % parts == 0) return parts;
  }
  return best;
}

namespace {

class OwnProduct : public Product {
 public:
  OwnProduct(const Kernels* kernels, const LinearWeights& weights,
             AlignedBuffer packed)
      : kernels_(kernels),
        in_(weights.weight.cols),
        out_(weights.weight.rows),
        column_parts_(PartsOf(*kernels, out_)),
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

  int32_t column_parts() const override { return column_parts_; }
  absl::Status RunColumns(const void* x, int64_t rows, int32_t part, void* y,
                          void* scratch) const override {
    const int64_t columns = out_ / column_parts_, first = part * columns;
    kernels_->product(static_cast<const float*>(x), rows,
                      packed_.floats() + first * in_, bias_.data() + first, in_,
                      columns, static_cast<float*>(y));
    return absl::OkStatus();
  }

 private:
  // Parts of whole panels, of which packed weights are made.
  static int32_t PartsOf(const Kernels& kernels, int64_t out) {
    const int64_t panel = kernels.packed_floats(1, 1);
    return out % panel == 0 ? ColumnParts(out / panel) : 1;
  }

  const Kernels* const kernels_;
  const int64_t in_;
  const int64_t out_;
  const int32_t column_parts_;
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
