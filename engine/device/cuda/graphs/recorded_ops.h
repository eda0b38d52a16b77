// The ops of a pass as plain data: recorded in order, run later, compared with
// another pass's. Two lists that are equal do the same to the same memory at
// the same grids, so that the same graphs serve both.
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_RECORDED_OPS_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_RECORDED_OPS_H_

#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "engine/device/cuda/ops.h"
#include "engine/device/cuda/runtime.h"

namespace encoderd {
namespace cuda {

// The ops of a pass, and those that a card adds.
template <typename Known, typename... More>
struct Joined;
template <typename... Known, typename... More>
struct Joined<std::variant<Known...>, More...> {
  using Type = std::variant<Known..., More...>;
};
using RecordedOp = Joined<Op, UploadOp, BiasActivationOp, QuantizeRowsOp>::Type;
using RecordedOps = std::vector<RecordedOp>;

// Where the last op is the product that gives x, and it can add a
// residual, lets it add this one, which is aligned, and is true: then x is the
// sum.
bool AddInProduct(const Matrix& x, const Matrix& residual, RecordedOps* ops);

// Where the last op is the LayerNorm that gives op.x, lets it write op.y too,
// and is true: the op itself is then not needed.
bool QuantizeInNorm(const QuantizeRowsOp& op, RecordedOps* ops);

// Puts an op on the stream: its error, with its name.
absl::Status RunOp(const RecordedOp& op, Runtime* runtime,
                   const OpStream& stream);

// All of them, up to the first that fails.
absl::Status RunOps(const RecordedOps& ops, Runtime* runtime,
                    const OpStream& stream);

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_GRAPHS_RECORDED_OPS_H_
