// Between floats and what a card holds, on the host (io/half_floats.h).
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_NARROW_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_NARROW_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/tensor.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {

// Half a unit in the last place of 1.
double UnitRoundoff(DType element);

// values [rows,cols] as rows in e4m3 (ops.h), as bytes.
std::vector<char> NarrowRowsToE4m3(absl::Span<const float> values,
                                   int64_t cols);

// values in `dtype`, as bytes.
std::vector<char> Narrow(absl::Span<const float> values, DType dtype);

// `count` values of `element` at `bytes`, which may be at any address.
std::vector<float> Widen(const void* bytes, int64_t count, DType element);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_NARROW_H_
