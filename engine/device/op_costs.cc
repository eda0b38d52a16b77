#include "engine/device/op_costs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/tensor.h"
#include "engine/device/device.h"

namespace encoderd {
namespace {

double Values(const Matrix& matrix) {
  return static_cast<double>(matrix.rows) * static_cast<double>(matrix.cols);
}

// Pairs of a query and a key within reach on one side, the query itself not
// counted, in a sequence of `length` tokens.
double PairsOnASide(int32_t length, int32_t reach) {
  const double n = length;
  if (reach < 0 || reach >= length) return n * (n - 1) / 2;
  return n * reach - double{1} * reach * (reach + 1.0) / 2;
}

double ElementBytes(const Matrix& matrix) {
  return static_cast<double>(DTypeBytes(matrix.dtype));
}

struct Coster {
  const std::vector<int32_t>& lengths;

  // From one matrix to another.
  template <typename O>
  OpTime operator()(const O& op) const {
    return {op.kName, 0, 0, BytesOf(op.x) + BytesOf(op.y)};
  }
  OpTime operator()(const EmbedOp& op) const {
    const double tables = 1 + (op.tables.position != nullptr ? 1 : 0) +
                          (op.tables.segment != nullptr ? 1 : 0);
    return {
        op.kName, 0, 0,
        (tables + 1) * BytesOf(op.out) + 12 * static_cast<double>(op.out.rows)};
  }
  OpTime operator()(const ProductOp& op) const {
    const auto rows = static_cast<double>(op.x.rows);
    const auto in = static_cast<double>(op.x.cols);
    const auto out = static_cast<double>(op.y.cols);
    const bool e4m3 = op.weights != nullptr && op.weights->in_fp8;
    return {absl::StrCat(op.kName, " ", op.x.cols, " -> ", op.y.cols,
                         e4m3 ? " (e4m3)" : "",
                         op.residual == nullptr ? "" : " + residual"),
            0, 2 * rows * in * out,
            (rows + out) * in * (e4m3 ? 1 : ElementBytes(op.x)) +
                (op.residual == nullptr ? 1 : 2) * BytesOf(op.y)};
  }
  OpTime operator()(const RotateOp& op) const {
    return {op.kName, 0, 0,
            BytesOf(op.qkv) * 4 / 3 * 2 * op.pairs / op.head_size};
  }
  OpTime operator()(const AttentionOp& op) const {
    const auto hidden = static_cast<double>(op.context.cols);
    const auto first = static_cast<size_t>(op.first_sequence);
    const size_t end = op.sequence_count == 0
                           ? lengths.size()
                           : first + static_cast<size_t>(op.sequence_count);
    double keys = 0, queries = 0, pairs = 0;
    for (size_t s = first; s < end; ++s) {
      keys += lengths[s];
      queries += op.needed_rows == nullptr ? lengths[s] : 1;
      pairs += op.needed_rows == nullptr
                   ? PairsWithin(op.reach, lengths[s])
                   : KeysWithin(op.reach, op.needed_rows[s], lengths[s]);
    }
    return {op.kName, 0, 4 * pairs * hidden,
            2 * (keys + queries) * hidden * ElementBytes(op.context)};
  }
  OpTime operator()(const AddNormOp& op) const {
    const bool adds = op.residual.data != nullptr;
    return {
        absl::StrCat(adds ? "add_layer_norm" : "layer_norm",
                     op.quantized == nullptr ? "" : " + e4m3"),
        0, 0,
        ((adds ? 3 : 2) + (op.sum.data == nullptr ? 0 : 1)) * BytesOf(op.y) +
            (op.quantized == nullptr ? 0 : Values(op.y))};
  }
  OpTime operator()(const PickRowsOp& op) const {
    return {op.kName, 0, 0, 2 * BytesOf(op.y)};
  }
  OpTime operator()(const PoolOp& op) const {
    double tokens = 0;
    for (const int32_t length : lengths) tokens += length;
    tokens = std::min(tokens, static_cast<double>(op.x.rows));  // if picked
    return {op.kName, 0, 0,
            tokens * static_cast<double>(op.x.cols) * ElementBytes(op.x)};
  }
};

}  // namespace

double PairsWithin(Reach reach, int32_t length) {
  return length + PairsOnASide(length, reach.left) +
         PairsOnASide(length, reach.right);
}

double KeysWithin(Reach reach, int32_t row, int32_t length) {
  const int32_t left = reach.left < 0 ? row : std::min(row, reach.left);
  const int32_t after = length - 1 - row;
  return 1.0 + left + (reach.right < 0 ? after : std::min(after, reach.right));
}

double BytesOf(const Matrix& matrix) {
  return Values(matrix) * ElementBytes(matrix);
}

OpTime CostOf(const Op& op, const std::vector<int32_t>& lengths) {
  return std::visit(Coster{lengths}, op);
}

}  // namespace encoderd
