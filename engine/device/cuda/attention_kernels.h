// The two forms of attention; attention_float.cu chooses. scale is
// log2(e) / sqrt(D) for Attention16.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_ATTENTION_KERNELS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_ATTENTION_KERNELS_H_

#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

// T: Half or Bf16.
template <typename T>
int Attention16(const AttentionArgs& args, float scale, const OpStream& stream);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_ATTENTION_KERNELS_H_
