// From token states [n,H] to one vector [H], the formulas of
// sentence-transformers' Pooling module. All sums in float (or wider), in token
// order, so that a vector's bits depend on its own tokens only.
#ifndef ENCODERD_ENGINE_BASE_POOLING_H_
#define ENCODERD_ENGINE_BASE_POOLING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/kinds.h"

namespace encoderd {

// "cls", "mean", "max", "mean_sqrt_len", "weightedmean", "lasttoken".
const char* PoolingName(Pooling pooling);
absl::StatusOr<Pooling> PoolingFromName(absl::string_view name);

// The row of states [n,H] that is the vector; less than 0: all rows make it.
int64_t PooledRow(Pooling pooling, int64_t n);

// Reference form on the host. states [n,H] row-major, n >= 1; out [H], must not
// alias states.
void PoolStates(Pooling pooling, const float* states, int64_t n,
                int64_t hidden_size, float* out);

// Divides by the Euclidean norm, which is computed in double; a norm below
// 1e-12 divides by 1e-12 (torch.nn.functional.normalize), so a zero vector
// stays zero.
void NormalizeL2(float* values, int64_t count);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_POOLING_H_
