#include "engine/device/cuda/products/bucketed_product.h"

#include <algorithm>

namespace encoderd {
namespace cuda {
namespace {

constexpr int64_t kTileRows = 128;
// With fewer, launches and the first and last tiles take too large a share.
constexpr int64_t kLeastFullBatch = 8192;

}  // namespace

size_t BucketOf(int64_t rows) {
  const auto* const found =
      std::lower_bound(kBucketRows.begin(), kBucketRows.end(), rows);
  return found - kBucketRows.begin();
}

int64_t FewestRows(size_t bucket) {
  return bucket == 0 ? 1 : kBucketRows[bucket - 1] + 1;
}

int64_t FullBatchRows(int32_t multiprocessors) {
  const int64_t wave = kTileRows * std::max(multiprocessors, 1);
  const int64_t waves = (kLeastFullBatch + wave - 1) / wave;
  return std::min(waves * wave, kBucketRows.back());
}

}  // namespace cuda
}  // namespace encoderd
