// One product by several algorithms: each serves a bucket of counts of rows.
// And the count of rows that fills a card.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_BUCKETED_PRODUCT_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_BUCKETED_PRODUCT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/device/cuda/products/products.h"

namespace encoderd {
namespace cuda {

// The most rows of each bucket.
inline constexpr std::array<int64_t, 10> kBucketRows = {
    16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 24576};

// The bucket that serves `rows` rows; kBucketRows.size() for more than any has.
size_t BucketOf(int64_t rows);
// The fewest rows of a bucket.
int64_t FewestRows(size_t bucket);

// Rows of a full batch on a card: the least multiple, from 8192 rows on, of 128
// rows for each multiprocessor, and at most what the last bucket holds. Tiles
// have 128 rows, or 64 or 256, so that every multiprocessor computes the same
// number of them, however many columns a product or a tile has: no wave of
// tiles leaves some idle. 132 multiprocessors: 16896 rows.
int64_t FullBatchRows(int32_t multiprocessors);

// All its parts must give a row the same bits. The last one, the reference,
// serves more than most_rows rows and more than any bucket has: up to most_rows
// the others have shown their bits.
class BucketedProduct : public Product {
 public:
  using Parts =
      std::array<std::shared_ptr<const Product>, kBucketRows.size() + 1>;
  BucketedProduct(Parts parts, int64_t most_rows, bool adds_residual)
      : parts_(std::move(parts)),
        most_rows_(most_rows),
        adds_residual_(adds_residual) {}

  absl::Status Run(const void* x, int64_t rows, void* y,
                   const OpStream& stream) const override {
    return Part(rows).Run(x, rows, y, stream);
  }
  bool adds_residual() const override { return adds_residual_; }
  absl::Status RunAdding(const void* x, int64_t rows, const void* residual,
                         void* y, const OpStream& stream) const override {
    return Part(rows).RunAdding(x, rows, residual, y, stream);
  }

 private:
  const Product& Part(int64_t rows) const {
    return rows > most_rows_ ? *parts_.back() : *parts_[BucketOf(rows)];
  }

  const Parts parts_;
  const int64_t most_rows_;
  const bool adds_residual_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_PRODUCTS_BUCKETED_PRODUCT_H_
