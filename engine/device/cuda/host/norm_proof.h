// Whether the rows in e4m3 that an AddNormOp writes itself are, on this card,
// those that a QuantizeRowsOp makes of its y.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_NORM_PROOF_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_NORM_PROOF_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "engine/device/cuda/ops.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

using NormStart = int (*)(const AddNormOp& op, const OpStream& stream);

// Runs both ways, with a residual and without, keeping the sum and not, on rows
// of `hidden` columns whose values span the element's exponents: random ones,
// zeros, tiny ones, one huge value among them, an infinity. y, the sum, codes
// and scales must have the same bytes. `figures`: what was compared. hidden is
// a multiple of 16, the element has 16 bits; the calling thread has chosen its
// device. norm: for tests.
//
// INTERNAL: a byte differs (the first is named), or a call failed; DATA_LOSS:
// the context is lost.
absl::Status ProveNormQuantizes(Runtime* runtime, DType element, int32_t hidden,
                                Stream stream, std::string* figures,
                                NormStart norm = &Start);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_NORM_PROOF_H_
