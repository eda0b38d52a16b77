#include "engine/device/cuda/host/memory_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/device/cuda/ops.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int64_t kAlignment = 256;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Weight [out,in], and its bias in both forms that a product may want.
int64_t LinearBytes(int64_t in, int64_t out, DType dtype, Operands operands) {
  return Aligned(operands == Operands::kE4m3 ? E4m3RowsBytes(out, in)
                                             : in * out * DTypeBytes(dtype)) +
         Aligned(out * 4);
}

int64_t NormBytes(int64_t hidden) { return 2 * Aligned(hidden * 4); }

}  // namespace

int64_t ModelBytes(const std::vector<WeightSize>& weights, DType dtype,
                   Operands operands) {
  int64_t bytes = 0;
  for (const WeightSize& weight : weights) {
    const int64_t values = weight.rows * weight.cols;
    switch (weight.kind) {
      case WeightSize::Kind::kTable:
        bytes += Aligned(values * DTypeBytes(dtype));
        break;
      case WeightSize::Kind::kLinear:
        bytes += LinearBytes(weight.cols, weight.rows, dtype,
                             weight.allow_fp8 ? operands : Operands::kElement);
        break;
      case WeightSize::Kind::kNorm:
        bytes += NormBytes(weight.rows);
        break;
      case WeightSize::Kind::kFloats:
        bytes += Aligned(4 * values);
        break;
    }
  }
  return bytes;
}

BatchLayout LayOutBatch(int64_t rows, int64_t attention_work,
                        int64_t picked_rows, int64_t pool_work) {
  const auto bytes = [](int64_t count, size_t each) {
    return Aligned(count * static_cast<int64_t>(each));
  };
  BatchLayout layout;
  layout.position_ids = layout.token_ids + bytes(rows, sizeof(int32_t));
  layout.segment_ids = layout.position_ids + bytes(rows, sizeof(int32_t));
  layout.attention_work = layout.segment_ids + bytes(rows, sizeof(int32_t));
  layout.picked_rows =
      layout.attention_work + bytes(attention_work, sizeof(AttentionWork));
  layout.pool_work = layout.picked_rows + bytes(picked_rows, sizeof(int32_t));
  layout.bytes = layout.pool_work + bytes(pool_work, sizeof(PoolWork));
  return layout;
}

SessionPlan PlanSession(const ExecutorLimits& limits, DType dtype,
                        int64_t workspace_bytes, Operands operands) {
  const int64_t tokens = limits.max_batch_tokens;
  const ModelSizes& model = limits.model;
  SessionPlan plan;
  // Every entry of attention's work list has its own query.
  plan.batch_bytes = LayOutBatch(tokens, tokens, limits.max_batch_sequences,
                                 limits.max_batch_sequences)
                         .bytes;
  plan.output_bytes =
      Aligned(4 * tokens * std::max(model.hidden_size, model.embedding_size));
  plan.activation_bytes = model.scratch_columns() * tokens * DTypeBytes(dtype);
  if (operands == Operands::kE4m3)
    plan.quantized_bytes = E4m3RowsBytes(tokens, model.hidden_size);
  plan.workspace_bytes = workspace_bytes;
  return plan;
}

absl::Status CheckMemory(int64_t model_bytes, int64_t session_bytes,
                         int32_t sessions, int64_t free_bytes,
                         absl::string_view remedy) {
  if (model_bytes + sessions * session_bytes <= free_bytes)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the model takes ", BytesText(model_bytes), " and each of ",
                   sessions, " sessions ", BytesText(session_bytes), " (",
                   model_bytes + sessions * session_bytes, " bytes in all); ",
                   free_bytes, " bytes (", BytesText(free_bytes),
                   ") of the card are free: use ", remedy));
}

std::string BytesText(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= int64_t{1} << 30) {
    return absl::StrFormat("%.2f GiB",
                           value / static_cast<double>(int64_t{1} << 30));
  }
  return absl::StrFormat("%.1f MiB",
                         value / static_cast<double>(int64_t{1} << 20));
}

}  // namespace cuda
}  // namespace encoderd
