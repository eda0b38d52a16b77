#include "engine/device/cuda/graphs/recorded_ops.h"

#include "engine/device/cuda/host/memory.h"

namespace encoderd {
namespace cuda {
namespace {

// Starts one op of any kind.
struct Starter {
  Runtime* runtime;
  OpStream stream;

  absl::Status Named(int code, const char* name) const {
    return code == 0 ? absl::OkStatus() : RuntimeError(runtime, code, name);
  }
  absl::Status operator()(const EmbedTokensArgs& args) const {
    return Named(EmbedTokens(args, stream), "embed_tokens");
  }
  absl::Status operator()(const ProductCall& call) const {
    if (call.residual == nullptr)
      return call.product->Run(call.x, call.rows, call.y, stream.stream);
    return call.product->RunAdding(call.x, call.rows, call.residual, call.y,
                                   stream.stream);
  }
  absl::Status operator()(const AttentionArgs& args) const {
    return Named(Attention(args, stream), "attention");
  }
  absl::Status operator()(const BiasActivationArgs& args) const {
    return Named(BiasActivation(args, stream), "bias_gelu");
  }
  absl::Status operator()(const AddLayerNormArgs& args) const {
    return Named(AddLayerNorm(args, stream), "add_layer_norm");
  }
  absl::Status operator()(const PoolArgs& args) const {
    return Named(Pool(args, stream), "pool");
  }
  absl::Status operator()(const QuantizeRowsArgs& args) const {
    return Named(QuantizeRows(args, stream), "quantize_rows");
  }
};

}  // namespace

bool AddInProduct(const void* x, int64_t rows, const void* residual,
                  RecordedOps* ops) {
  if (ops->empty() || x == residual || !IsAligned(residual)) return false;
  auto* call = std::get_if<ProductCall>(&ops->back());
  if (call == nullptr || call->y != x || call->rows != rows ||
      call->x == residual || !call->product->adds_residual())
    return false;
  call->residual = residual;
  return true;
}

bool QuantizeInNorm(const QuantizeRowsArgs& args, RecordedOps* ops) {
  if (ops->empty() || args.element == Element::kFloat) return false;
  auto* norm = std::get_if<AddLayerNormArgs>(&ops->back());
  if (norm == nullptr || norm->y != args.x || norm->rows != args.rows ||
      norm->hidden != args.cols)
    return false;
  norm->quantized = args.y;
  return true;
}

absl::Status RunOp(const RecordedOp& op, Runtime* runtime, Stream stream,
                   bool overlaps) {
  return std::visit(Starter{runtime, OpStream(stream, overlaps)}, op);
}

absl::Status RunOps(const RecordedOps& ops, Runtime* runtime, Stream stream,
                    bool overlaps) {
  for (const RecordedOp& op : ops) {
    absl::Status status = RunOp(op, runtime, stream, overlaps);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace cuda
}  // namespace encoderd
