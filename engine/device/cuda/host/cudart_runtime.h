// runtime.h on CUDA's runtime, which is linked statically and looks for the
// driver when it is first called: a program with it starts without one.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_CUDART_RUNTIME_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_CUDART_RUNTIME_H_

#include <memory>

#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

std::shared_ptr<Runtime> NewCudartRuntime();

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_CUDART_RUNTIME_H_
