// How a small pass is padded so that its kernels have the grids of every pass
// of its bucket, and one CUDA graph serves them all. Pure.
//
// Rows that pad are tokens of id 0 that belong to no sequence: attention has no
// entry for them and leaves their context as it is. Entries that pad a work
// list are empty and end at once. A row's bits never depend on other rows, so
// padding changes none, whatever the padding rows contain.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_GRAPH_BUCKET_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_GRAPH_BUCKET_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/device/cuda/attention_path.h"

namespace encoderd {
namespace cuda {

struct Bucket {
  int64_t rows = 0;  // tokens, those that pad counted in
  // Entries of attention's work list, and of each of pooling's: at least one
  // for each sequence.
  int64_t work = 0;

  bool operator==(const Bucket&) const = default;
};

inline constexpr int64_t kMostBucketRows = kMostGraphRows;

// The bucket of a batch, or none: it is empty or too large. max_batch_tokens,
// at least the batch's own, bounds rows and work.
std::optional<Bucket> ChooseBucket(const std::vector<int32_t>& cu_seqlens,
                                   const AttentionRule& rule,
                                   int64_t max_batch_tokens);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_GRAPH_BUCKET_H_
