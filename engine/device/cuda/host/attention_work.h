// A batch -> attention's work list: every query of every sequence once, a
// path's entries together and the paths in the order of AttentionPath; within
// one, long sequences first so that none is left for the end. The order changes
// no bits. Pure.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_WORK_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_WORK_H_

#include <array>
#include <cstdint>
#include <vector>

#include "engine/device/cuda/attention_path.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

// Entries of each path.
using AttentionCounts = std::array<int64_t, kAttentionPaths>;

// order: scratch, reused from call to call. work must hold cu_seqlens.back()
// entries; returns how many of each path were written.
AttentionCounts ListAttentionWork(const std::vector<int32_t>& cu_seqlens,
                                  const AttentionRule& rule,
                                  std::vector<int32_t>* order,
                                  AttentionWork* work);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_WORK_H_
