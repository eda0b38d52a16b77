#include "engine/device/cuda/cuda_executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/device/cuda/attention_work.h"

namespace encoderd {
namespace cuda {
namespace {

PoolKind KindOf(Pooling pooling) {
  switch (pooling) {
    case Pooling::kCls:
      return PoolKind::kCls;
    case Pooling::kMean:
      return PoolKind::kMean;
    case Pooling::kMax:
      return PoolKind::kMax;
    case Pooling::kMeanSqrtLen:
      return PoolKind::kMeanSqrtLen;
    case Pooling::kWeightedMean:
      return PoolKind::kWeightedMean;
    case Pooling::kLastToken:
      break;
  }
  return PoolKind::kLastToken;
}

}  // namespace

Element ElementOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return Element::kHalf;
    case DType::kBF16:
      return Element::kBf16;
    case DType::kF32:
      break;
  }
  return Element::kFloat;
}

CudaExecutor::CudaExecutor(std::shared_ptr<Context> context,
                           const ExecutorLimits& limits)
    : context_(std::move(context)),
      runtime_(*context_->runtime),
      limits_(limits),
      plan_(PlanSession(limits, context_->dtype)),
      element_(ElementOf(context_->dtype)) {}

CudaExecutor::~CudaExecutor() {
  // Memory is given back to the device that it is of, after its last use.
  runtime_.UseDevice(context_->ordinal);
  if (stream_.get() != nullptr) runtime_.Synchronize(stream_.get());
}

absl::StatusOr<std::unique_ptr<Executor>> CudaExecutor::Create(
    std::shared_ptr<Context> context, const ExecutorLimits& limits) {
  auto executor =
      absl::WrapUnique(new CudaExecutor(std::move(context), limits));
  Runtime* runtime = &executor->runtime_;
  const SessionPlan& plan = executor->plan_;
  int code = runtime->UseDevice(executor->context_->ordinal);
  int64_t free_bytes = 0;
  if (code == 0) code = runtime->FreeBytes(&free_bytes);
  if (code != 0) return RuntimeError(runtime, code, "asking for free memory");
  absl::Status status = CheckMemory(0, plan.device_bytes(), 1, free_bytes);
  const auto take = [&](auto* buffer, int64_t bytes, const char* what) {
    if (status.ok()) status = buffer->Take(runtime, bytes, what);
  };
  if (status.ok()) status = executor->stream_.Take(runtime);
  take(&executor->batch_memory_, plan.batch_bytes, "the batch");
  take(&executor->batch_staging_, plan.batch_bytes, "the batch");
  take(&executor->pool_work_, plan.pool_work_bytes, "pooling's work");
  take(&executor->pool_staging_, plan.pool_work_bytes, "pooling's work");
  take(&executor->output_, plan.output_bytes, "results");
  take(&executor->output_staging_, plan.output_bytes, "results");
  if (!status.ok()) return status;
  return std::unique_ptr<Executor>(std::move(executor));
}

absl::StatusOr<Matrix> CudaExecutor::Allocate(int64_t rows, int64_t cols) {
  const int code = runtime_.UseDevice(context_->ordinal);
  if (code != 0) return RuntimeError(&runtime_, code, "choosing the device");
  DeviceBuffer buffer;
  const DType dtype = context_->dtype;
  absl::Status status =
      buffer.Take(&runtime_, rows * cols * DTypeBytes(dtype), "activations");
  if (!status.ok()) return status;
  Matrix matrix{buffer.data(), rows, cols, dtype};
  matrices_.push_back(std::move(buffer));
  return matrix;
}

void CudaExecutor::Record(int code, const char* what) {
  if (code != 0) Record(RuntimeError(&runtime_, code, what));
}

void CudaExecutor::Record(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kDataLoss) context_->lost = true;
  if (status_.ok()) status_ = status;
}

void CudaExecutor::Upload(const PackedBatch& batch) {
  batch_ = &batch;
  result_ = nullptr;
  pool_begin_ = pool_end_ = 0;
  status_ = absl::OkStatus();
  if (context_->lost) {
    return Record(absl::DataLossError(
        absl::StrCat("cuda:", context_->ordinal,
                     " was lost by an earlier error of this process")));
  }
  const int64_t tokens = batch.num_tokens();
  if (tokens > limits_.max_batch_tokens ||
      batch.num_sequences() > limits_.max_batch_sequences ||
      batch.max_seqlen > limits_.max_seqlen) {
    return Record(absl::InternalError(absl::StrCat(
        "a batch of ", tokens, " tokens in ", batch.num_sequences(),
        " sequences of up to ", batch.max_seqlen, " is over this executor's ",
        limits_.max_batch_tokens, ", ", limits_.max_batch_sequences, " and ",
        limits_.max_seqlen)));
  }
  Record(runtime_.UseDevice(context_->ordinal), "choosing the device");
  char* staging = batch_staging_.as<char>();
  const auto stage = [&](const std::vector<int32_t>& ids, int64_t offset) {
    std::memcpy(staging + offset, ids.data(), 4 * tokens);
  };
  stage(batch.token_ids, plan_.token_ids);
  stage(batch.position_ids, plan_.position_ids);
  stage(batch.segment_ids, plan_.segment_ids);
  attention_work_ = ListAttentionWork(
      batch.cu_seqlens, element_, &order_,
      reinterpret_cast<AttentionWork*>(staging + plan_.attention_work));
  const int64_t work_end =
      plan_.attention_work +
      attention_work_ * static_cast<int64_t>(sizeof(AttentionWork));
  Record(runtime_.CopyToDevice(staging, work_end, batch_memory_.data(),
                               stream_.get()),
         "upload");
}

void CudaExecutor::Embed(const CudaEmbeddings& embeddings, const NormArgs& norm,
                         Matrix out) {
  if (Failed()) return;
  const char* memory = batch_memory_.as<char>();
  const auto ids = [&](int64_t offset) {
    return reinterpret_cast<const int32_t*>(memory + offset);
  };
  EmbedTokensArgs args;
  args.element = element_;
  args.token = embeddings.token.data();
  args.position = embeddings.position.data();
  args.segment = embeddings.segment.data();
  args.token_ids = ids(plan_.token_ids);
  args.position_ids = ids(plan_.position_ids);
  args.segment_ids = ids(plan_.segment_ids);
  args.rows = out.rows;
  args.hidden = static_cast<int32_t>(out.cols);
  args.norm = norm;
  args.out = out.data;
  Record(cuda::EmbedTokens(args, stream_.get()), "embed_tokens");
}

void CudaExecutor::EmbedTokens(const DeviceEmbeddings& tables, Matrix out) {
  const auto& embeddings = static_cast<const CudaEmbeddings&>(tables);
  Embed(embeddings, embeddings.norm.args(), out);
}

void CudaExecutor::SumTables(const DeviceEmbeddings& tables, Matrix out) {
  Embed(static_cast<const CudaEmbeddings&>(tables), {nullptr, nullptr, 0}, out);
}

void CudaExecutor::Linear(Matrix x, const DeviceLinear& weights, Matrix y) {
  if (Failed()) return;
  const auto& linear = static_cast<const CudaLinear&>(weights);
  Record(linear.product->Run(x.data, x.rows, y.data, stream_.get()));
  if (Failed() || !linear.activate) return;
  BiasActivationArgs args;
  args.element = element_;
  args.function = linear.function;
  args.bias = linear.bias.as<float>();
  args.rows = y.rows;
  args.cols = static_cast<int32_t>(y.cols);
  args.y = y.data;
  Record(BiasActivation(args, stream_.get()), "bias_gelu");
}

void CudaExecutor::Attention(Matrix qkv, int32_t num_heads,
                             const DeviceAttentionBias* bias, Matrix context) {
  if (Failed()) return;
  AttentionArgs args = {};
  args.element = element_;
  args.qkv = qkv.data;
  args.work = reinterpret_cast<const AttentionWork*>(batch_memory_.as<char>() +
                                                     plan_.attention_work);
  args.work_count = attention_work_;
  args.heads = num_heads;
  args.head_size = static_cast<int32_t>(context.cols) / num_heads;
  if (bias != nullptr) {
    const auto& biases = static_cast<const CudaAttentionBias&>(*bias);
    args.bias = biases.values.as<float>() + biases.columns / 2;
    args.bias_stride = biases.columns;
  }
  args.context = context.data;
  Record(cuda::Attention(args, stream_.get()), "attention");
}

void CudaExecutor::AddLayerNorm(Matrix x, Matrix residual,
                                const DeviceNorm& norm, Matrix y) {
  if (Failed()) return;
  AddLayerNormArgs args;
  args.element = element_;
  args.x = x.data;
  args.residual = residual.data;
  args.rows = x.rows;
  args.hidden = static_cast<int32_t>(x.cols);
  args.norm = static_cast<const CudaNorm&>(norm).args();
  args.y = y.data;
  Record(cuda::AddLayerNorm(args, stream_.get()), "add_layer_norm");
}

void CudaExecutor::AddPoolWork(int64_t b, PoolKind kind, bool normalize,
                               const ForwardResult& result) {
  PoolWork& work = pool_staging_.as<PoolWork>()[pool_end_++];
  work.out_offset = result.offsets[b];
  work.first = batch_->cu_seqlens[b];
  work.length = batch_->cu_seqlens[b + 1] - work.first;
  work.kind = kind;
  work.normalize = normalize ? 1 : 0;
}

void CudaExecutor::RunPoolWork(Matrix x, ForwardResult* result) {
  if (pool_begin_ == pool_end_) return;
  result_ = result;
  PoolWork* work = pool_work_.as<PoolWork>() + pool_begin_;
  const int64_t count = pool_end_ - pool_begin_;
  Record(runtime_.CopyToDevice(pool_staging_.as<PoolWork>() + pool_begin_,
                               count * static_cast<int64_t>(sizeof(PoolWork)),
                               work, stream_.get()),
         "upload of pooling's work");
  pool_begin_ = pool_end_;
  if (Failed()) return;
  PoolArgs args;
  args.element = element_;
  args.x = x.data;
  args.work = work;
  args.work_count = count;
  args.hidden = static_cast<int32_t>(x.cols);
  args.out = output_.as<float>();
  Record(cuda::Pool(args, stream_.get()), "pool");
}

void CudaExecutor::TakeStates(Matrix x, int32_t layer,
                              absl::Span<const SequenceOutput> outputs,
                              ForwardResult* result) {
  if (Failed()) return;
  for (int64_t b = 0; b < batch_->num_sequences(); ++b) {
    if (outputs[b].kind == SequenceOutput::Kind::kStates &&
        outputs[b].layer == layer)
      AddPoolWork(b, PoolKind::kStates, false, *result);
  }
  RunPoolWork(x, result);
}

void CudaExecutor::Pool(Matrix x, absl::Span<const SequenceOutput> outputs,
                        ForwardResult* result) {
  if (Failed()) return;
  for (int64_t b = 0; b < batch_->num_sequences(); ++b) {
    if (outputs[b].kind == SequenceOutput::Kind::kPooled) {
      AddPoolWork(b, KindOf(outputs[b].pooling), outputs[b].normalize, *result);
    }
  }
  RunPoolWork(x, result);
}

absl::Status CudaExecutor::Finish() {
  const int64_t bytes =
      result_ == nullptr ? 0 : 4 * static_cast<int64_t>(result_->values.size());
  if (!Failed() && bytes > 0) {
    Record(runtime_.CopyToHost(output_.data(), bytes, output_staging_.data(),
                               stream_.get()),
           "download");
  }
  // Also after an error: staging must be free for the next pass.
  if (!context_->lost) Record(runtime_.Synchronize(stream_.get()), "the pass");
  if (!Failed() && bytes > 0)
    std::memcpy(result_->values.data(), output_staging_.data(), bytes);
  batch_ = nullptr;
  result_ = nullptr;
  return status_;
}

}  // namespace cuda
}  // namespace encoderd
