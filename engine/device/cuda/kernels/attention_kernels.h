// The forms of attention for 16-bit elements, T being Half or Bf16;
// attention_float.cu has float, and chooses.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ATTENTION_KERNELS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ATTENTION_KERNELS_H_

#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

// The general path.
template <typename T>
int Attention16(const AttentionOp& op, const OpStream& stream);

// kPath: any other.
template <AttentionPath kPath, typename T>
int AttentionWhole(const AttentionOp& op, const OpStream& stream);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ATTENTION_KERNELS_H_
