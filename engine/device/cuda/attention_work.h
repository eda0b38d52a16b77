// A batch -> attention's work list: every query of every sequence once, blocks
// of long sequences first so that none is left for the end. The order changes
// no bits. Pure.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_ATTENTION_WORK_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_ATTENTION_WORK_H_

#include <cstdint>
#include <vector>

#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

// order: scratch, reused from call to call. work must hold cu_seqlens.back()
// entries; returns how many were written.
int64_t ListAttentionWork(const std::vector<int32_t>& cu_seqlens,
                          Element element, std::vector<int32_t>* order,
                          AttentionWork* work);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_ATTENTION_WORK_H_
