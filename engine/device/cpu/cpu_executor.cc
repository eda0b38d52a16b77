#include "engine/device/cpu/cpu_executor.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/base/pooling.h"

namespace encoderd {
namespace cpu {
namespace {

absl::Status NoMemory(int64_t bytes, absl::string_view what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for ", bytes, " bytes of ", what));
}

absl::Status Reserve(int64_t bytes, absl::string_view what,
                     AlignedBuffer* buffer) {
  *buffer = AlignedBuffer(bytes);
  return buffer->data() == nullptr ? NoMemory(bytes, what) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> CpuExecutor::Create(
    const Kernels& kernels, const ExecutorLimits& limits,
    int64_t product_scratch_bytes) {
  auto executor = absl::WrapUnique(new CpuExecutor(kernels, limits));
  const int64_t head_size = limits.hidden_size / limits.num_attention_heads;
  absl::Status status = Reserve(product_scratch_bytes, "product scratch",
                                &executor->product_scratch_);
  if (status.ok()) {
    status =
        Reserve(kernels.attention_scratch_bytes(limits.max_seqlen, head_size),
                "attention scratch", &executor->attention_scratch_);
  }
  if (status.ok())
    status = Reserve(std::max(limits.hidden_size, limits.embedding_size) * 4,
                     "row scratch", &executor->row_);
  if (status.ok() && kernels.bf16) {
    status = Reserve(int64_t{4} * limits.max_seqlen * limits.hidden_size,
                     "pooling scratch", &executor->states_);
  }
  if (!status.ok()) return status;
  return std::unique_ptr<Executor>(std::move(executor));
}

absl::StatusOr<Matrix> CpuExecutor::Allocate(int64_t rows, int64_t cols) {
  AlignedBuffer buffer;
  absl::Status status =
      Reserve(rows * cols * DTypeBytes(dtype()), "activations", &buffer);
  if (!status.ok()) return status;
  Matrix matrix{buffer.data(), rows, cols, dtype()};
  matrices_.push_back(std::move(buffer));
  return matrix;
}

void CpuExecutor::Upload(const PackedBatch& batch) {
  batch_ = &batch;
  status_ = absl::OkStatus();
  if (batch.num_tokens() > limits_.max_batch_tokens ||
      batch.num_sequences() > limits_.max_batch_sequences ||
      batch.max_seqlen > limits_.max_seqlen) {
    status_ = absl::InternalError(absl::StrCat(
        "a batch of ", batch.num_tokens(), " tokens in ", batch.num_sequences(),
        " sequences of up to ", batch.max_seqlen, " is over this executor's ",
        limits_.max_batch_tokens, ", ", limits_.max_batch_sequences, " and ",
        limits_.max_seqlen));
  }
}

void CpuExecutor::Embed(const CpuEmbeddings& embeddings, const NormRef& norm,
                        Matrix out) {
  if (Failed()) return;
  const EmbeddingWeights& tables = embeddings.tables;
  EmbedArgs args;
  args.token = tables.token.data.data();
  args.position =
      tables.position.rows == 0 ? nullptr : tables.position.data.data();
  args.segment =
      tables.segment.rows == 0 ? nullptr : tables.segment.data.data();
  args.token_ids = batch_->token_ids.data();
  args.position_ids = batch_->position_ids.data();
  args.segment_ids = batch_->segment_ids.data();
  args.rows = batch_->num_tokens();
  args.norm = norm;
  kernels_.embed(args, row_.floats(), out.data);
}

void CpuExecutor::EmbedTokens(const DeviceEmbeddings& tables, Matrix out) {
  const auto& embeddings = static_cast<const CpuEmbeddings&>(tables);
  Embed(embeddings, embeddings.norm.ref(), out);
}

void CpuExecutor::SumTables(const DeviceEmbeddings& tables, Matrix out) {
  Embed(static_cast<const CpuEmbeddings&>(tables),
        {nullptr, nullptr, 0, out.cols}, out);
}

void CpuExecutor::Linear(Matrix x, const DeviceLinear& weights, Matrix y) {
  if (Failed()) return;
  const auto& linear = static_cast<const CpuLinear&>(weights);
  for (int64_t r = 0; r < x.rows && !Failed(); r += kProductRows) {
    const int64_t rows = std::min(kProductRows, x.rows - r);
    status_ = linear.product->Run(x.Rows(r, 0).data, rows, y.Rows(r, 0).data,
                                  product_scratch_.data());
    const int64_t count = rows * linear.out;
    switch (linear.activation) {
      case Activation::kNone:
        break;
      case Activation::kGeluErf:
        kernels_.element_wise(ElementWise::kGeluErf, count, y.Rows(r, 0).data);
        break;
      case Activation::kGeluTanh:
        kernels_.element_wise(ElementWise::kGeluTanh, count, y.Rows(r, 0).data);
        break;
      case Activation::kRelu:
        kernels_.element_wise(ElementWise::kRelu, count, y.Rows(r, 0).data);
        break;
    }
  }
}

void CpuExecutor::Attention(Matrix qkv, int32_t num_heads,
                            const DeviceAttentionBias* bias, Matrix context) {
  if (Failed()) return;
  AttentionArgs args = {};
  args.heads = num_heads;
  args.head_size = context.cols / num_heads;
  args.scratch = attention_scratch_.data();
  if (bias != nullptr) {
    const auto& biases = static_cast<const CpuAttentionBias&>(*bias);
    args.bias = biases.rows.data.data() + biases.zero;
    args.bias_stride = biases.rows.cols;
  }
  for (int64_t b = 0; b < batch_->num_sequences(); ++b) {
    const int64_t first = batch_->cu_seqlens[b];
    args.qkv = qkv.Rows(first, 0).data;
    args.context = context.Rows(first, 0).data;
    args.n = batch_->cu_seqlens[b + 1] - first;
    kernels_.attention(args);
  }
}

void CpuExecutor::AddLayerNorm(Matrix x, Matrix residual,
                               const DeviceNorm& norm, Matrix y) {
  if (Failed()) return;
  kernels_.add_layer_norm(x.data, residual.data, x.rows,
                          static_cast<const CpuNorm&>(norm).ref(),
                          row_.floats(), y.data);
}

const float* CpuExecutor::SequenceStates(Matrix x, int64_t b) {
  const int64_t first = batch_->cu_seqlens[b];
  const int64_t n = batch_->cu_seqlens[b + 1] - first;
  if (!kernels_.bf16)
    return reinterpret_cast<const float*>(x.Rows(first, 0).data);
  kernels_.to_float(x.Rows(first, 0).data, n * x.cols, states_.floats());
  return states_.floats();
}

void CpuExecutor::TakeStates(Matrix x, int32_t layer,
                             absl::Span<const SequenceOutput> outputs,
                             ForwardResult* result) {
  if (Failed()) return;
  for (int64_t b = 0; b < batch_->num_sequences(); ++b) {
    if (outputs[b].kind != SequenceOutput::Kind::kStates ||
        outputs[b].layer != layer)
      continue;
    const int64_t first = batch_->cu_seqlens[b];
    kernels_.to_float(x.Rows(first, 0).data,
                      (batch_->cu_seqlens[b + 1] - first) * x.cols,
                      result->values.data() + result->offsets[b]);
  }
}

void CpuExecutor::Pool(Matrix x, absl::Span<const SequenceOutput> outputs,
                       ForwardResult* result) {
  if (Failed()) return;
  for (int64_t b = 0; b < batch_->num_sequences(); ++b) {
    if (outputs[b].kind != SequenceOutput::Kind::kPooled) continue;
    float* out = result->values.data() + result->offsets[b];
    PoolStates(outputs[b].pooling, SequenceStates(x, b),
               batch_->cu_seqlens[b + 1] - batch_->cu_seqlens[b], x.cols, out);
    if (outputs[b].normalize) NormalizeL2(out, x.cols);
  }
}

absl::Status CpuExecutor::Finish() {
  batch_ = nullptr;
  return status_;
}

}  // namespace cpu
}  // namespace encoderd
