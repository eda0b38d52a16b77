// Attention by its formula, in double on the host: what a proof compares with
// where two kernels could share an error.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_FORMULA_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_FORMULA_H_

#include <cstdint>
#include <vector>

#include "engine/device/ops.h"

namespace encoderd {
namespace cuda {

struct AttentionByFormula {
  std::vector<double> context;  // [length, heads head_size]
  // Of each row and head [length, heads]: how far a context may be from it, in
  // the largest value of its column, because scores are float sums.
  std::vector<double> errors;
};

// Of one sequence: qkv [length, 3 heads head_size] as Q|K|V. bias, bias_stride:
// as in AttentionOp, on the host. Pure.
AttentionByFormula ComputeAttention(const float* qkv, int32_t length,
                                    int32_t heads, int32_t head_size,
                                    const Reach& reach, const float* bias,
                                    int32_t bias_stride);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_ATTENTION_FORMULA_H_
