// Floats -> the device's dtype on the host, to nearest, ties to even.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_NARROW_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_NARROW_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/tensor.h"

namespace encoderd {
namespace cuda {

// bf16 and fp16 as bits. A value past fp16's range becomes infinite.
uint16_t NarrowToBf16(float value);
uint16_t NarrowToHalf(float value);

// values in `dtype`, as bytes.
std::vector<char> Narrow(absl::Span<const float> values, DType dtype);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_NARROW_H_
