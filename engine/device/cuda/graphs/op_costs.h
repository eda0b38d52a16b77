// What an op of a pass computes and moves at least: its name, FLOP and bytes.
// Pure.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_OP_COSTS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_OP_COSTS_H_

#include <cstdint>
#include <vector>

#include "engine/device/cuda/graphs/recorded_ops.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cuda {

// Without seconds. FLOP of products and of attention's two products, each
// multiply-add as two; bytes of every operand read and result written once.
// cu_seqlens: of the pass; attention_paths: those that serve, by PathBit.
OpTime CostOf(const RecordedOp& op, const std::vector<int32_t>& cu_seqlens,
              uint32_t attention_paths);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_OP_COSTS_H_
