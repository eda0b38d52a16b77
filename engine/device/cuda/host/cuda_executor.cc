#include "engine/device/cuda/host/cuda_executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/device/cuda/graphs/op_costs.h"
#include "engine/device/cuda/host/narrow.h"
#include "engine/device/cuda/host/pool_kind.h"

namespace encoderd {
namespace cuda {

CudaExecutor::CudaExecutor(std::shared_ptr<Context> context,
                           const ExecutorLimits& limits)
    : context_(std::move(context)),
      runtime_(*context_->runtime),
      limits_(limits),
      plan_(PlanSession(limits, context_->dtype, context_->operands)),
      element_(ElementOf(context_->dtype)),
      attention_rule_{
          element_,
          limits.hidden_size / std::max(1, limits.num_attention_heads),
          context_->attention_paths},
      passes_(&runtime_, context_->graphs, context_->overlaps) {}

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
  take(&executor->output_, plan.output_bytes, "results");
  take(&executor->output_staging_, plan.output_bytes, "results");
  if (plan.quantized_bytes > 0)
    take(&executor->quantized_, plan.quantized_bytes, "rows in e4m3");
  if (!status.ok()) return status;
  return std::unique_ptr<Executor>(std::move(executor));
}

absl::StatusOr<Matrix> CudaExecutor::Allocate(int64_t rows, int64_t cols) {
  const int code = runtime_.UseDevice(context_->ordinal);
  if (code != 0) return RuntimeError(&runtime_, code, "choosing the device");
  DeviceBuffer buffer;
  const DType dtype = context_->dtype;
  const int64_t bytes = rows * cols * DTypeBytes(dtype);
  absl::Status status = buffer.Take(&runtime_, bytes, "activations");
  if (!status.ok()) return status;
  Matrix matrix{buffer.data(), rows, cols, dtype};
  matrices_.push_back({std::move(buffer), bytes});
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
  ops_.clear();
  pool_begin_ = pool_end_ = 0;
  unpooled_ = batch.num_sequences();
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
  Stage(batch);
}

void CudaExecutor::Stage(const PackedBatch& batch) {
  const int64_t tokens = batch.num_tokens();
  // Ops are observed without the rows that pad.
  const bool pads = passes_.graphs() && context_->observe_ops == nullptr;
  bucket_ = pads ? ChooseBucket(batch.cu_seqlens, attention_rule_,
                                limits_.max_batch_tokens)
                 : std::nullopt;
  const int64_t rows = bucket_ ? bucket_->rows : tokens;
  layout_ = LayOutBatch(rows, bucket_ ? bucket_->work : rows, 0);
  char* staging = batch_staging_.as<char>();
  const auto stage = [&](const std::vector<int32_t>& ids, int64_t offset) {
    auto* to = reinterpret_cast<int32_t*>(staging + offset);
    std::fill(std::copy(ids.begin(), ids.end(), to), to + rows, 0);
  };
  stage(batch.token_ids, layout_.token_ids);
  stage(batch.position_ids, layout_.position_ids);
  stage(batch.segment_ids, layout_.segment_ids);
  auto* work =
      reinterpret_cast<AttentionWork*>(staging + layout_.attention_work);
  if (bucket_) std::fill(work, work + bucket_->work, AttentionWork());
  attention_work_ =
      ListAttentionWork(batch.cu_seqlens, attention_rule_, &order_, work);
}

int64_t CudaExecutor::PaddedRows(const Matrix& matrix) const {
  return bucket_ && matrix.rows == batch_->num_tokens() ? bucket_->rows
                                                        : matrix.rows;
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
  args.token_ids = ids(layout_.token_ids);
  args.position_ids = ids(layout_.position_ids);
  args.segment_ids = ids(layout_.segment_ids);
  args.rows = PaddedRows(out);
  args.hidden = static_cast<int32_t>(out.cols);
  args.norm = norm;
  args.out = out.data;
  ops_.emplace_back(args);
}

void CudaExecutor::EmbedTokens(const DeviceEmbeddings& tables, Matrix out) {
  const auto& embeddings = static_cast<const CudaEmbeddings&>(tables);
  Embed(embeddings, embeddings.norm.args(), out);
}

void CudaExecutor::SumTables(const DeviceEmbeddings& tables, Matrix out) {
  Embed(static_cast<const CudaEmbeddings&>(tables), {nullptr, nullptr, 0}, out);
}

const void* CudaExecutor::Operand(Matrix x, Operands operands) {
  if (operands == Operands::kElement) return x.data;
  QuantizeRowsArgs args;
  args.element = element_;
  args.x = x.data;
  args.rows = PaddedRows(x);
  args.cols = static_cast<int32_t>(x.cols);
  args.y = quantized_.data();
  if (E4m3RowsBytes(args.rows, args.cols) > plan_.quantized_bytes) {
    Record(absl::InternalError(absl::StrCat(
        args.rows, " rows of ", args.cols, " columns in e4m3 are over the ",
        plan_.quantized_bytes, " bytes that this executor has for them")));
  } else if (!context_->fused_e4m3 || !QuantizeInNorm(args, &ops_)) {
    ops_.emplace_back(args);
  }
  return quantized_.data();
}

void CudaExecutor::Linear(Matrix x, const DeviceLinear& weights, Matrix y) {
  if (Failed()) return;
  const auto& linear = static_cast<const CudaLinear&>(weights);
  const void* const operand = Operand(x, linear.operands);
  if (!IsAligned(operand) || !IsAligned(y.data)) {
    return Record(absl::InternalError(absl::StrCat(
        "a product of rows that are not aligned to ", kOperandAlignment)));
  }
  ops_.emplace_back(ProductCall{linear.product.get(), operand, PaddedRows(x),
                                /*residual=*/nullptr, y.data, element_,
                                static_cast<int32_t>(x.cols),
                                static_cast<int32_t>(y.cols), linear.operands});
  if (!linear.activate) return;
  BiasActivationArgs args;
  args.element = element_;
  args.function = linear.function;
  args.bias = linear.bias.as<float>();
  args.rows = PaddedRows(y);
  args.cols = static_cast<int32_t>(y.cols);
  args.y = y.data;
  ops_.emplace_back(args);
}

void CudaExecutor::Attention(Matrix qkv, int32_t num_heads,
                             const DeviceAttentionBias* bias, Matrix context) {
  if (Failed()) return;
  AttentionArgs args = {};
  args.element = element_;
  args.qkv = qkv.data;
  args.heads = num_heads;
  args.head_size = static_cast<int32_t>(context.cols) / num_heads;
  if (bias != nullptr) {
    const auto& biases = static_cast<const CudaAttentionBias&>(*bias);
    args.bias = biases.values.as<float>() + biases.columns / 2;
    args.bias_stride = biases.columns;
  }
  args.context = context.data;
  args.work = reinterpret_cast<const AttentionWork*>(batch_memory_.as<char>() +
                                                     layout_.attention_work);
  // A path's part of the list; in a bucket all of it: grids stay the same.
  for (int32_t p = 0; p < kAttentionPaths; ++p) {
    args.path = static_cast<AttentionPath>(p);
    const int64_t entries = attention_work_[p];
    args.work_count = bucket_ ? bucket_->work : entries;
    if (entries > 0) ops_.emplace_back(args);
    if (!bucket_) args.work += entries;
  }
}

void CudaExecutor::AddLayerNorm(Matrix x, Matrix residual,
                                const DeviceNorm& norm, Matrix y) {
  if (Failed()) return;
  AddLayerNormArgs args;
  args.element = element_;
  args.x = x.data;
  args.residual = AddInProduct(x.data, PaddedRows(x), residual.data, &ops_)
                      ? nullptr
                      : residual.data;
  args.rows = PaddedRows(x);
  args.hidden = static_cast<int32_t>(x.cols);
  args.norm = static_cast<const CudaNorm&>(norm).args();
  args.y = y.data;
  ops_.emplace_back(args);
}

void CudaExecutor::AddPoolWork(int64_t b, PoolKind kind, bool normalize,
                               const ForwardResult& result) {
  auto* staged = reinterpret_cast<PoolWork*>(batch_staging_.as<char>() +
                                             layout_.pool_work);
  PoolWork& work = staged[pool_end_++];
  work.out_offset = result.offsets[b];
  work.first = batch_->cu_seqlens[b];
  work.length = batch_->cu_seqlens[b + 1] - work.first;
  work.kind = kind;
  work.normalize = normalize ? 1 : 0;
  --unpooled_;
}

void CudaExecutor::RecordPool(Matrix x, ForwardResult* result) {
  if (pool_begin_ == pool_end_) return;
  result_ = result;
  // Padded where the rest of the batch then has room. Where it has not, the ops
  // count what this batch has, and make a graph of their own.
  const int64_t room =
      (plan_.batch_bytes - layout_.pool_work) / int64_t{sizeof(PoolWork)};
  if (bucket_ && pool_begin_ + bucket_->work + unpooled_ <= room) {
    auto* staged = reinterpret_cast<PoolWork*>(batch_staging_.as<char>() +
                                               layout_.pool_work);
    const int64_t end = pool_begin_ + bucket_->work;
    std::fill(staged + pool_end_, staged + end, PoolWork());
    pool_end_ = end;
  }
  PoolArgs args;
  args.element = element_;
  args.x = x.data;
  args.work = reinterpret_cast<const PoolWork*>(batch_memory_.as<char>() +
                                                layout_.pool_work) +
              pool_begin_;
  args.work_count = pool_end_ - pool_begin_;
  args.hidden = static_cast<int32_t>(x.cols);
  args.out = output_.as<float>();
  ops_.emplace_back(args);
  pool_begin_ = pool_end_;
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
  RecordPool(x, result);
}

void CudaExecutor::Pool(Matrix x, absl::Span<const SequenceOutput> outputs,
                        ForwardResult* result) {
  if (Failed()) return;
  for (int64_t b = 0; b < batch_->num_sequences(); ++b) {
    if (outputs[b].kind == SequenceOutput::Kind::kPooled) {
      AddPoolWork(b, KindOf(outputs[b].pooling), outputs[b].normalize, *result);
    }
  }
  RecordPool(x, result);
}

absl::Status CudaExecutor::Finish() {
  const int64_t bytes =
      result_ == nullptr ? 0 : 4 * static_cast<int64_t>(result_->values.size());
  if (!Failed()) {
    const int64_t work_bytes = pool_end_ * int64_t{sizeof(PoolWork)};
    Record(runtime_.CopyToDevice(batch_staging_.data(),
                                 layout_.pool_work + work_bytes,
                                 batch_memory_.data(), stream_.get()),
           "upload");
  }
  const bool observed = context_->observe_ops != nullptr;
  if (!Failed()) {
    Record(observed ? RunObserved()
                    : passes_.Run(ops_, bucket_ && bytes > 0, stream_.get()));
  }
  Download(bytes);
  if (!Failed() && bytes > 0) {
    std::memcpy(result_->values.data(), output_staging_.data(), bytes);
    if (!observed) {
      Record(passes_.TryFaster(ops_, result_->values.data(), bytes, Written(),
                               stream_.get()));
    }
  }
  const std::string note = passes_.TakeNote();
  if (result_ != nullptr && !note.empty())
    result_->note = absl::StrCat("cuda:", context_->ordinal, ": ", note);
  batch_ = nullptr;
  result_ = nullptr;
  return status_;
}

PassMemory CudaExecutor::Written() const {
  PassMemory memory;
  for (const Activations& matrix : matrices_)
    memory.scratch.push_back({matrix.memory.data(), matrix.bytes});
  if (plan_.quantized_bytes > 0)
    memory.scratch.push_back({quantized_.data(), plan_.quantized_bytes});
  memory.output = {output_.data(), plan_.output_bytes};
  memory.staging = output_staging_.as<char>();
  return memory;
}

absl::Status CudaExecutor::RunObserved() {
  // Events between all ops, and one wait: ops follow each other without gaps.
  std::vector<OwnedEvent> events(ops_.size() + 1);
  for (OwnedEvent& event : events) {
    const absl::Status status = event.Take(&runtime_);
    if (!status.ok()) return status;
  }
  const auto mark = [&](size_t i) {
    return runtime_.RecordEvent(events[i].get(), stream_.get());
  };
  int code = mark(0);
  absl::Status status;
  for (size_t i = 0; i < ops_.size() && status.ok() && code == 0; ++i) {
    status = RunOp(ops_[i], &runtime_, stream_.get());
    if (status.ok()) code = mark(i + 1);
  }
  if (status.ok() && code == 0) code = runtime_.Synchronize(stream_.get());
  for (size_t i = 0; i < ops_.size() && status.ok() && code == 0; ++i) {
    OpTime time =
        CostOf(ops_[i], batch_->cu_seqlens, context_->attention_paths);
    code = runtime_.SecondsBetween(events[i].get(), events[i + 1].get(),
                                   &time.seconds);
    if (code == 0) context_->observe_ops(time);
  }
  if (status.ok() && code != 0)
    status = RuntimeError(&runtime_, code, "timing ops");
  return status;
}

void CudaExecutor::Download(int64_t bytes) {
  if (!Failed() && bytes > 0) {
    Record(runtime_.CopyToHost(output_.data(), bytes, output_staging_.data(),
                               stream_.get()),
           "download");
  }
  // Also after an error: staging must be free for the next pass. Not after a
  // pass that failed on a lost device; one that another Session lost in between
  // says so here.
  if (!Failed() || !context_->lost)
    Record(runtime_.Synchronize(stream_.get()), "the pass");
}

}  // namespace cuda
}  // namespace encoderd
