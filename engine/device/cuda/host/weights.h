// Constant weights on a card: what device.h's handles are here. They own the
// memory that ops point to.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_WEIGHTS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_WEIGHTS_H_

#include <memory>

#include "engine/device/cuda/host/memory.h"
#include "engine/device/cuda/products/products.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cuda {

struct CudaLinear : DeviceLinear {
  DeviceBuffer weight;  // [out,in] in the device's dtype or e4m3
  DeviceBuffer bias;    // [out], float, or the dtype if in the epilogue
  // By a separate kernel, bias included; kNone: the product does it.
  Activation activation = Activation::kNone;
  std::unique_ptr<Product> product;
};

struct CudaNorm : DeviceNorm {
  DeviceBuffer gain;  // [H]
  DeviceBuffer bias;  // [H]
};

struct CudaEmbeddings : DeviceEmbeddings {
  DeviceBuffer token;     // [V,H] in the device's dtype
  DeviceBuffer position;  // [P,H]
  DeviceBuffer segment;   // [S,H], or nothing
  DeviceBuffer gain, bias;
};

struct CudaAttentionBias : DeviceAttentionBias {
  DeviceBuffer values;  // [A,columns], distances -max_len+1 .. max_len-1
};

struct CudaRotation : DeviceRotation {
  DeviceBuffer cosines;  // [P,pairs]
  DeviceBuffer sines;    // [P,pairs]
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_WEIGHTS_H_
