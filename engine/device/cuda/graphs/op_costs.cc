#include "engine/device/cuda/graphs/op_costs.h"

#include "absl/strings/str_cat.h"
#include "engine/device/cuda/attention_path.h"
#include "engine/device/cuda/host/attention_proof.h"
#include "engine/device/cuda/host/narrow.h"

namespace encoderd {
namespace cuda {
namespace {

double ElementBytes(Element element) {
  return static_cast<double>(DTypeBytes(DTypeOf(element)));
}

struct Coster {
  const std::vector<int32_t>& cu_seqlens;
  const uint32_t attention_paths;

  double Tokens() const { return cu_seqlens.back(); }

  OpTime operator()(const EmbedTokensArgs& args) const {
    const double tables = 1 + (args.position != nullptr ? 1 : 0) +
                          (args.segment != nullptr ? 1 : 0);
    return {"embed_tokens", 0, 0,
            static_cast<double>(args.rows) *
                ((tables + 1) * args.hidden * ElementBytes(args.element) + 12)};
  }
  OpTime operator()(const ProductCall& call) const {
    const auto rows = static_cast<double>(call.rows);
    const double in = call.in, out = call.out;
    const bool e4m3 = call.operands == Operands::kE4m3;
    const double operand = e4m3 ? 1 : ElementBytes(call.element);
    const double results = call.residual == nullptr ? 1 : 2;
    return {absl::StrCat("product ", call.in, " -> ", call.out,
                         e4m3 ? " (e4m3)" : "",
                         call.residual == nullptr ? "" : " + residual"),
            0, 2 * rows * in * out,
            (rows + out) * in * operand +
                results * rows * out * ElementBytes(call.element)};
  }
  OpTime operator()(const AttentionArgs& args) const {
    const double hidden = double{1} * args.heads * args.head_size;
    double tokens = 0, pairs = 0;
    for (size_t b = 0; b + 1 < cu_seqlens.size(); ++b) {
      const int32_t length = cu_seqlens[b + 1] - cu_seqlens[b];
      if (PathOf(args.element, args.head_size, length, attention_paths) !=
          args.path)
        continue;
      tokens += length;
      pairs += double{1} * length * length;
    }
    return {absl::StrCat("attention ", PathName(args.path)), 0,
            4 * pairs * hidden,
            4 * tokens * hidden * ElementBytes(args.element)};
  }
  OpTime operator()(const BiasActivationArgs& args) const {
    return {"bias_gelu", 0, 0,
            2 * static_cast<double>(args.rows) * args.cols *
                ElementBytes(args.element)};
  }
  OpTime operator()(const AddLayerNormArgs& args) const {
    const double rows_moved = args.residual == nullptr ? 2 : 3;
    const double codes = args.quantized == nullptr ? 0 : 1;
    return {absl::StrCat(args.residual == nullptr ? "" : "add_", "layer_norm",
                         args.quantized == nullptr ? "" : " + e4m3"),
            0, 0,
            static_cast<double>(args.rows) * args.hidden *
                (rows_moved * ElementBytes(args.element) + codes)};
  }
  OpTime operator()(const QuantizeRowsArgs& args) const {
    return {"quantize_rows", 0, 0,
            static_cast<double>(args.rows) * args.cols *
                (ElementBytes(args.element) + 1)};
  }
  OpTime operator()(const PoolArgs& args) const {
    return {"pool", 0, 0, Tokens() * args.hidden * ElementBytes(args.element)};
  }
};

}  // namespace

OpTime CostOf(const RecordedOp& op, const std::vector<int32_t>& cu_seqlens,
              uint32_t attention_paths) {
  return std::visit(Coster{cu_seqlens, attention_paths}, op);
}

}  // namespace cuda
}  // namespace encoderd
