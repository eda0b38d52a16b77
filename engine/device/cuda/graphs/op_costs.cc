#include "engine/device/cuda/graphs/op_costs.h"

#include "absl/strings/str_cat.h"
#include "engine/base/tensor.h"
#include "engine/device/cuda/attention_path.h"
#include "engine/device/cuda/host/attention_proof.h"

namespace encoderd {
namespace cuda {
namespace {

struct Coster {
  const std::vector<int32_t>& cu_seqlens;
  const uint32_t attention_paths;

  // Of the sequences for which `has` of their length is true.
  template <typename Has>
  std::vector<int32_t> Lengths(const Has& has) const {
    std::vector<int32_t> lengths;
    for (size_t b = 0; b + 1 < cu_seqlens.size(); ++b) {
      const int32_t length = cu_seqlens[b + 1] - cu_seqlens[b];
      if (has(length)) lengths.push_back(length);
    }
    return lengths;
  }

  OpTime operator()(const AttentionOp& op) const {
    OpTime cost = CostOf(Op(op), Lengths([&](int32_t length) {
                           return PathOf(op.qkv.dtype, op.head_size, length,
                                         attention_paths) == op.path;
                         }));
    absl::StrAppend(&cost.op, " ", PathName(op.path));
    return cost;
  }
  // Of passes that are padded, and so never observed.
  OpTime operator()(const UploadOp& op) const {
    return {op.kName, 0, 0, 2 * static_cast<double>(op.bytes)};
  }
  OpTime operator()(const BiasActivationOp& op) const {
    return {op.kName, 0, 0, 2 * BytesOf(op.y)};
  }
  OpTime operator()(const QuantizeRowsOp& op) const {
    const double bytes = BytesOf(op.x);
    return {op.kName, 0, 0,
            bytes + bytes / static_cast<double>(DTypeBytes(op.x.dtype))};
  }
  template <typename O>
  OpTime operator()(const O& op) const {
    return CostOf(Op(op), Lengths([](int32_t) { return true; }));
  }
};

}  // namespace

OpTime CostOf(const RecordedOp& op, const std::vector<int32_t>& cu_seqlens,
              uint32_t attention_paths) {
  return std::visit(Coster{cu_seqlens, attention_paths}, op);
}

}  // namespace cuda
}  // namespace encoderd
