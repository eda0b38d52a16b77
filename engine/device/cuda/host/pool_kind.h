// From the engine's word for a pooling to the kernel's.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_POOL_KIND_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_POOL_KIND_H_

#include "engine/base/pooling.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

inline PoolKind KindOf(Pooling pooling) {
  switch (pooling) {
    case Pooling::kCls:
      return PoolKind::kCls;
    case Pooling::kMean:
      return PoolKind::kMean;
    case Pooling::kMax:
      return PoolKind::kMax;
    case Pooling::kMeanSqrtLen:
      return PoolKind::kMeanSqrtLen;
    case Pooling::kWeightedMean:
      return PoolKind::kWeightedMean;
    case Pooling::kLastToken:
      break;
  }
  return PoolKind::kLastToken;
}

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_POOL_KIND_H_
