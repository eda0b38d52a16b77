// The kernels' fast paths prove themselves at start, each compared with its
// plain path: those of attention, and LayerNorm's own rows in e4m3. (Products
// do so in tuned_products and gelu_products, graphs and overlapping launches in
// fast_passes.)
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_PROVE_PATHS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_PROVE_PATHS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/device/cuda/host/attention_proof.h"
#include "engine/device/cuda/host/norm_proof.h"
#include "engine/device/cuda/ops.h"
#include "engine/device/cuda/products/products.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/model_sizes.h"

namespace encoderd {
namespace cuda {

// What has proved itself.
struct FastPaths {
  uint32_t attention_paths = 0;  // by PathBit
  std::vector<Reach> reaches;    // for which they serve, each once
  bool fused_e4m3 = false;
};

// Proves what a model of these sizes would use on the device in use. A path
// that fails is not among *paths, and a note says by how much; one note has the
// figures of all that serve. attention, norm: for tests. DATA_LOSS: the device
// was lost on the way; else OK.
absl::Status ProvePaths(Runtime* runtime, const ModelSizes& sizes,
                        DType element, Operands operands, FastPaths* paths,
                        std::vector<std::string>* notes,
                        const AttentionStart& attention = kStartAttention,
                        NormStart norm = &Start);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_PROVE_PATHS_H_
