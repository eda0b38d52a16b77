#include "engine/device/cuda/graphs/graph_bucket.h"

#include <algorithm>

namespace encoderd {
namespace cuda {
namespace {

// Up to 128 tokens a pass waits for launches and weights, and padding is free;
// up to 512 at most half is added, from there on a quarter: products compute
// rows 128 at a time, so that less would often save nothing.
constexpr int64_t kRows[] = {16,  32,  64,  128,  192,  256,  384,  512,
                             640, 768, 896, 1024, 1280, 1536, 1792, 2048};
static_assert(kRows[std::size(kRows) - 1] == kMostBucketRows, "the last");

}  // namespace

std::optional<Bucket> ChooseBucket(const std::vector<int32_t>& cu_seqlens,
                                   const AttentionRule& rule,
                                   int64_t max_batch_tokens) {
  const int64_t tokens = cu_seqlens.back();
  if (tokens == 0 || tokens > kMostBucketRows) return std::nullopt;
  Bucket bucket;
  bucket.rows =
      std::min(*std::lower_bound(std::begin(kRows), std::end(kRows), tokens),
               max_batch_tokens);
  int64_t needed = 0;
  for (size_t b = 0; b + 1 < cu_seqlens.size(); ++b) {
    const int32_t length = cu_seqlens[b + 1] - cu_seqlens[b];
    needed += rule.Entries(length);
  }
  bucket.work = 1;
  while (bucket.work < needed) bucket.work *= 2;
  // Every entry has its own query, so no more are necessary.
  bucket.work = std::min(bucket.work, bucket.rows);
  return bucket;
}

}  // namespace cuda
}  // namespace encoderd
