// One forward pass at a time on the calling thread, and on those of its team
// that are idle; the constant weights that it reads. Internal to
// engine/device/cpu.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_CPU_EXECUTOR_H_
#define ENCODERD_ENGINE_DEVICE_CPU_CPU_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/product.h"
#include "engine/device/cpu/team.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cpu {

struct CpuLinear : DeviceLinear {
  explicit CpuLinear(Product product) : product(std::move(product)) {}
  const Product product;
};

// A handle and the host memory that it points to.
template <typename Handle, typename Memory>
struct Held : Handle {
  explicit Held(Memory memory) : memory(std::move(memory)) {}
  const Memory memory;
};
using CpuNorm = Held<DeviceNorm, NormWeights>;
using CpuEmbeddings = Held<DeviceEmbeddings, EmbeddingWeights>;
// [A,2n-1], each row padded with kBiasPadding zeros.
using CpuAttentionBias = Held<DeviceAttentionBias, HostMatrix>;
using CpuRotation = Held<DeviceRotation, std::pair<HostMatrix, HostMatrix>>;

// product_bytes: the most scratch that a product of kProductRows rows asks for.
// `team` outlives it. RESOURCE_EXHAUSTED if memory is unavailable.
absl::StatusOr<std::unique_ptr<Executor>> NewCpuExecutor(
    const Kernels& kernels, const ExecutorLimits& limits, int64_t product_bytes,
    Team* team);

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_CPU_EXECUTOR_H_
