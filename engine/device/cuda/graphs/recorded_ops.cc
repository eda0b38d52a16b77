#include "engine/device/cuda/graphs/recorded_ops.h"

#include "engine/device/cuda/host/memory.h"
#include "engine/device/cuda/host/weights.h"

namespace encoderd {
namespace cuda {
namespace {

// Starts one op of any kind.
struct Starter {
  Runtime* runtime;
  OpStream stream;

  absl::Status operator()(const ProductOp& op) const {
    const Product& product =
        *static_cast<const CudaLinear&>(*op.weights).product;
    if (op.residual == nullptr)
      return product.Run(op.x.data, op.x.rows, op.y.data, stream);
    return product.RunAdding(op.x.data, op.x.rows, op.residual, op.y.data,
                             stream);
  }
  template <typename O>
  absl::Status operator()(const O& op) const {
    const int code = Start(op, stream);
    return code == 0 ? absl::OkStatus() : RuntimeError(runtime, code, O::kName);
  }
};

}  // namespace

bool AddInProduct(const Matrix& x, const Matrix& residual, RecordedOps* ops) {
  if (ops->empty() || residual.data == nullptr || x.data == residual.data)
    return false;
  auto* product = std::get_if<ProductOp>(&ops->back());
  if (product == nullptr || product->y != x ||
      product->x.data == residual.data ||
      !static_cast<const CudaLinear&>(*product->weights)
           .product->adds_residual())
    return false;
  product->residual = residual.data;
  return true;
}

bool QuantizeInNorm(const QuantizeRowsOp& op, RecordedOps* ops) {
  if (ops->empty() || op.x.dtype == DType::kF32) return false;
  auto* norm = std::get_if<AddNormOp>(&ops->back());
  if (norm == nullptr || norm->y != op.x) return false;
  norm->quantized = op.y;
  return true;
}

absl::Status RunOp(const RecordedOp& op, Runtime* runtime,
                   const OpStream& stream) {
  return std::visit(Starter{runtime, stream}, op);
}

absl::Status RunOps(const RecordedOps& ops, Runtime* runtime,
                    const OpStream& stream) {
  for (const RecordedOp& op : ops) {
    absl::Status status = RunOp(op, runtime, stream);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace cuda
}  // namespace encoderd
