// From a dtype to the type a kernel is compiled for.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ELEMENTS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ELEMENTS_H_

#include "engine/device/cuda/kernels/primitives.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

// Calls launch.template operator()<T>().
template <typename LaunchWith>
int WithElement(DType element, const LaunchWith& launch) {
  switch (element) {
    case DType::kF16:
      return launch.template operator()<Half>();
    case DType::kBF16:
      return launch.template operator()<Bf16>();
    case DType::kF32:
      break;
  }
  return launch.template operator()<float>();
}

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_KERNELS_ELEMENTS_H_
