// What an op that a card records computes and moves at least
// (device/op_costs.h). Pure.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_OP_COSTS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_OP_COSTS_H_

#include <cstdint>
#include <vector>

#include "engine/device/cuda/graphs/recorded_ops.h"
#include "engine/device/op_costs.h"

namespace encoderd {
namespace cuda {

// cu_seqlens: of the pass; attention_paths: those that serve, by PathBit.
OpTime CostOf(const RecordedOp& op, const std::vector<int32_t>& cu_seqlens,
              uint32_t attention_paths);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_OP_COSTS_H_
