#include "engine/device/cuda/products/bucketed_product.h"

#include <algorithm>

namespace encoderd {
namespace cuda {

size_t BucketOf(int64_t rows) {
  const auto* const found =
      std::lower_bound(kBucketRows.begin(), kBucketRows.end(), rows);
  return found - kBucketRows.begin();
}

int64_t FewestRows(size_t bucket) {
  return bucket == 0 ? 1 : kBucketRows[bucket - 1] + 1;
}

}  // namespace cuda
}  // namespace encoderd
