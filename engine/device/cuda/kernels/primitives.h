// The few things that a kernel asks of the machine it runs on: indices,
// barriers, shuffles, asynchronous copies, matrix fragments, conversions.
//
// Every kernel of this folder is written against these alone, so that the same
// source compiles with nvcc for a card and, in the tests, with the host's
// compiler over an emulation (tests/support/cuda) that checks what a card
// leaves undefined. primitives_nvcc.h says what each one does.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_PRIMITIVES_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_PRIMITIVES_H_

#include <cstdint>

#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

// IEEE binary16 and bfloat16, as bits.
struct Half {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

struct LaunchShape {
  int64_t blocks_x = 1;
  int32_t blocks_y = 1;
  int32_t threads = 1;       // of a block; a multiple of 32
  int32_t shared_bytes = 0;  // of a block; at most 48 KiB
};

}  // namespace cuda
}  // namespace encoderd

#ifdef __CUDACC__
#include "engine/device/cuda/kernels/primitives_nvcc.h"
#else
#include "emulated_primitives.h"  // on the include path of tests/support/cuda
#endif

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_PRIMITIVES_H_
