#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/int8_kernels.h"
#include "engine/device/cpu/product.h"

namespace encoderd {
namespace cpu {
namespace {

// Each part makes the codes of all rows, so there are few.
constexpr int32_t kMostParts = 4;

class Int8Product : public Product {
 public:
  Int8Product(const Int8Kernels& kernels, const LinearWeights& source,
              AlignedBuffer packed, AlignedBuffer columns)
      : kernels_(kernels),
        in_(source.weight.cols),
        out_(source.weight.rows),
        column_parts_(PartsOf(kernels, out_)),
        packed_(std::move(packed)),
        columns_(std::move(columns)) {
    const int64_t padded = Padded(kernels, out_);
    weights_.packed = static_cast<int8_t*>(packed_.data());
    weights_.scales = columns_.floats();
    weights_.bias = weights_.scales + padded;
    weights_.sums = reinterpret_cast<int32_t*>(weights_.bias + padded);
    std::vector<float> row(kernels_.code_bytes(in_));
    kernels_.pack(source.weight.data.data(), in_, out_, row.data(), weights_);
    std::fill_n(weights_.bias, padded, 0.0f);
    std::copy(source.bias.begin(), source.bias.end(), weights_.bias);
  }

  static int64_t Padded(const Int8Kernels& kernels, int64_t out) {
    return (out + kernels.panel - 1) / kernels.panel * kernels.panel;
  }

  // A rotated row, the codes of all, and their scales.
  int64_t scratch_bytes() const override {
    return 4 * kernels_.code_bytes(in_) +
           kProductRows *
               (kernels_.code_bytes(in_) + int64_t{sizeof(RowScale)});
  }
  absl::Status Run(const void* x, int64_t rows, void* y,
                   void* scratch) const override {
    Multiply(x, rows, 0, out_, y, scratch);
    return absl::OkStatus();
  }
  int32_t column_parts() const override { return column_parts_; }
  absl::Status RunColumns(const void* x, int64_t rows, int32_t part, void* y,
                          void* scratch) const override {
    const int64_t columns = out_ / column_parts_;
    Multiply(x, rows, part * columns, columns, y, scratch);
    return absl::OkStatus();
  }

 private:
  // Parts of whole panels.
  static int32_t PartsOf(const Int8Kernels& kernels, int64_t out) {
    for (int32_t parts : {kMostParts, 2, 3}) {
      if (out % (kernels.panel * parts) == 0) return parts;
    }
    return 1;
  }

  void Multiply(const void* x, int64_t rows, int64_t first_column,
                int64_t columns, void* y, void* scratch) const {
    auto* const row = static_cast<float*>(scratch);
    auto* const codes =
        reinterpret_cast<uint8_t*>(row + kernels_.code_bytes(in_));
    auto* const scales = reinterpret_cast<RowScale*>(
        codes + kProductRows * kernels_.code_bytes(in_));
    const auto* from = static_cast<const char*>(x);
    auto* to = static_cast<char*>(y);
    const int64_t size = DTypeBytes(DType::kBF16);
    for (; rows > 0; rows -= kProductRows) {
      const int64_t take = std::min(rows, kProductRows);
      kernels_.quantize(from, take, in_, row, codes, scales);
      kernels_.multiply(codes, scales, take, weights_, in_, first_column,
                        columns, to);
      from += take * in_ * size;
      to += take * columns * size;
    }
  }

  const Int8Kernels& kernels_;
  const int64_t in_, out_;
  const int32_t column_parts_;
  const AlignedBuffer packed_, columns_;
  Int8Weights weights_;  // in these
};

class Int8ProductFactory : public ProductFactory {
 public:
  Int8ProductFactory(const Int8Kernels& kernels,
                     std::unique_ptr<ProductFactory> others)
      : kernels_(kernels), others_(std::move(others)) {}

  absl::StatusOr<std::unique_ptr<Product>> Create(
      const LinearWeights& weights) override {
    if (!weights.allow_int8) return others_->Create(weights);
    const int64_t in = weights.weight.cols, out = weights.weight.rows;
    AlignedBuffer packed(kernels_.packed_bytes(in, out));
    AlignedBuffer columns(int64_t{3} * 4 * Int8Product::Padded(kernels_, out));
    if (packed.data() == nullptr || columns.data() == nullptr) {
      return absl::ResourceExhaustedError(
          "no memory for the packed weights of a layer");
    }
    return std::unique_ptr<Product>(absl::make_unique<Int8Product>(
        kernels_, weights, std::move(packed), std::move(columns)));
  }

 private:
  const Int8Kernels& kernels_;
  const std::unique_ptr<ProductFactory> others_;
};

}  // namespace

std::unique_ptr<ProductFactory> Int8Products(
    const Int8Kernels& kernels, std::unique_ptr<ProductFactory> others) {
  return absl::make_unique<Int8ProductFactory>(kernels, std::move(others));
}

}  // namespace cpu
}  // namespace encoderd
