#include "engine/device/cuda/graph_bucket.h"

#include <algorithm>

namespace encoderd {
namespace cuda {
namespace {

// Up to 128 tokens a pass waits for launches and weights, and padding is free;
// from there on at most half is added.
constexpr int64_t kRows[] = {16, 32, 64, 128, 192, 256, 384, kMostBucketRows};

}  // namespace

std::optional<Bucket> ChooseBucket(const std::vector<int32_t>& cu_seqlens,
                                   Element element, int64_t max_batch_tokens) {
  const int64_t tokens = cu_seqlens.back();
  if (tokens == 0 || tokens > kMostBucketRows) return std::nullopt;
  Bucket bucket;
  bucket.rows =
      std::min(*std::lower_bound(std::begin(kRows), std::end(kRows), tokens),
               max_batch_tokens);
  const int64_t queries = AttentionQueries(element);
  const auto entries = [&](int64_t length) {
    return (length + queries - 1) / queries;
  };
  int64_t needed = entries(bucket.rows - tokens);
  for (size_t b = 0; b + 1 < cu_seqlens.size(); ++b)
    needed += entries(cu_seqlens[b + 1] - cu_seqlens[b]);
  bucket.work = 1;
  while (bucket.work < needed) bucket.work *= 2;
  // Every entry has a query of its own, so there is no need for more.
  bucket.work = std::min(bucket.work, bucket.rows);
  return bucket;
}

void PadSequences(int64_t rows, Element element,
                  std::vector<int32_t>* cu_seqlens) {
  const auto end = static_cast<int32_t>(rows);
  while (cu_seqlens->back() < end) {
    cu_seqlens->push_back(
        std::min(end, cu_seqlens->back() + AttentionQueries(element)));
  }
}

}  // namespace cuda
}  // namespace encoderd
