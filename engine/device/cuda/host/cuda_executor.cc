#include "engine/device/cuda/host/cuda_executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/device/cuda/graphs/op_costs.h"
#include "engine/device/cuda/host/weights.h"

namespace encoderd {
namespace cuda {
namespace {

bool Has(const std::vector<Reach>& reaches, const Reach& reach) {
  return std::find(reaches.begin(), reaches.end(), reach) != reaches.end();
}

// One rule for all layers of a model: a batch has one list of work.
uint32_t PathsFor(const ModelSizes& model, const Context& context) {
  if (!context.proved_reaches) return context.attention_paths;
  const bool proved = std::all_of(
      model.reaches.begin(), model.reaches.end(),
      [&](const Reach& reach) { return Has(*context.proved_reaches, reach); });
  return proved ? context.attention_paths : 0;
}

}  // namespace

CudaExecutor::CudaExecutor(std::shared_ptr<Context> context,
                           const ExecutorLimits& limits)
    : context_(std::move(context)),
      runtime_(*context_->runtime),
      limits_(limits),
      plan_(PlanSession(limits, context_->dtype, context_->workspace_bytes,
                        context_->operands)),
      attention_rule_{context_->dtype, limits.model.head_size(),
                      PathsFor(limits.model, *context_)},
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
  if (code != 0) return RuntimeError(runtime, code, "querying free memory");
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
  if (plan.workspace_bytes > 0)
    take(&executor->workspace_, plan.workspace_bytes, "products' workspace");
  if (!status.ok()) return status;
  return std::unique_ptr<Executor>(std::move(executor));
}

absl::StatusOr<Matrix> CudaExecutor::Allocate(int64_t rows, int64_t cols) {
  const int code = runtime_.UseDevice(context_->ordinal);
  if (code != 0) return RuntimeError(&runtime_, code, "choosing the device");
  DeviceBuffer buffer;
  const DType dtype = context_->dtype;
  const int64_t bytes = rows * cols * DTypeBytes(dtype);
  if (bytes > plan_.activation_bytes - activation_bytes_) {
    return absl::InternalError(absl::StrCat(
        "activations of ", rows, " rows and ", cols, " columns take ", bytes,
        " bytes; ", plan_.activation_bytes - activation_bytes_, " of the ",
        plan_.activation_bytes, " that were planned are available"));
  }
  absl::Status status = buffer.Take(&runtime_, bytes, "activations");
  if (!status.ok()) return status;
  Matrix matrix{buffer.data(), rows, cols, dtype};
  matrices_.push_back({std::move(buffer), bytes});
  activation_bytes_ += bytes;
  return matrix;
}

void CudaExecutor::Record(int code, const char* what) {
  if (code != 0) Record(RuntimeError(&runtime_, code, what));
}

void CudaExecutor::Record(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kDataLoss) context_->lost = true;
  if (status_.ok()) status_ = status;
}

BatchRef CudaExecutor::Upload(const PackedBatch& batch) {
  batch_ = &batch;
  ops_.clear();
  picked_ = nullptr;
  pool_end_ = 0;
  unpooled_ = batch.num_sequences();
  has_states_ = false;
  status_ = absl::OkStatus();
  const int64_t tokens = batch.num_tokens();
  if (context_->lost) {
    Record(absl::DataLossError(
        absl::StrCat("cuda:", context_->ordinal,
                     " was lost because of an earlier error in this process")));
  } else if (tokens > limits_.max_batch_tokens ||
             batch.num_sequences() > limits_.max_batch_sequences ||
             batch.max_seqlen > limits_.model.max_len) {
    Record(absl::InternalError(absl::StrCat(
        "a batch of ", tokens, " tokens in ", batch.num_sequences(),
        " sequences of up to ", batch.max_seqlen, " exceeds this executor's ",
        limits_.max_batch_tokens, ", ", limits_.max_batch_sequences, " and ",
        limits_.model.max_len)));
  } else {
    Record(runtime_.UseDevice(context_->ordinal), "choosing the device");
    return Stage(batch);
  }
  return {tokens};
}

BatchRef CudaExecutor::Stage(const PackedBatch& batch) {
  const int64_t tokens = batch.num_tokens();
  // Ops are observed without the rows that pad.
  const bool pads = passes_.graphs() && context_->observe_ops == nullptr;
  bucket_ = pads ? ChooseBucket(batch.cu_seqlens, attention_rule_,
                                limits_.max_batch_tokens)
                 : std::nullopt;
  const int64_t rows = bucket_ ? bucket_->rows : tokens;
  // Each sequence has an entry in attention's work list.
  sequences_ = bucket_ ? std::min(bucket_->work, limits_.max_batch_sequences)
                       : batch.num_sequences();
  layout_ = LayOutBatch(rows, bucket_ ? bucket_->work : rows, sequences_, 0);
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
  const auto ids = [&](int64_t offset) {
    return reinterpret_cast<const int32_t*>(batch_memory_.as<char>() + offset);
  };
  return {rows, ids(layout_.token_ids), ids(layout_.position_ids),
          ids(layout_.segment_ids), sequences_};
}

Matrix CudaExecutor::Operand(Matrix x, bool in_fp8) {
  if (!in_fp8) return x;
  const QuantizeRowsOp op = {x, quantized_.data()};
  if (E4m3RowsBytes(x.rows, x.cols) > plan_.quantized_bytes) {
    Record(absl::InternalError(absl::StrCat(
        x.rows, " rows of ", x.cols, " columns in e4m3 exceed the ",
        plan_.quantized_bytes, " bytes reserved for them")));
  } else if (!context_->fused_e4m3 || !QuantizeInNorm(op, &ops_)) {
    ops_.emplace_back(op);
  }
  x.data = quantized_.data();
  return x;
}

void CudaExecutor::Do(const ProductOp& op) {
  const auto& linear = static_cast<const CudaLinear&>(*op.weights);
  ProductOp product = op;
  product.x = Operand(op.x, linear.in_fp8);
  if (!IsAligned(product.x.data) || !IsAligned(op.y.data)) {
    return Record(absl::InternalError(absl::StrCat(
        "a product of rows that are not aligned to ", kOperandAlignment)));
  }
  ops_.emplace_back(product);
  if (linear.activation == Activation::kNone) return;
  ops_.emplace_back(
      BiasActivationOp{linear.activation, linear.bias.as<float>(), op.y});
}

void CudaExecutor::Do(const AttentionOp& op) {
  if (op.reach != Reach() && !Has(limits_.model.reaches, op.reach)) {
    return Record(absl::InternalError(absl::StrCat(
        "attention's reach ", op.reach.left, " and ", op.reach.right,
        " is not among those of this executor's model")));
  }
  AttentionOp part = op;
  part.sequence_count = 0;  // a row block is a whole batch; graphs compare ops
  part.work = reinterpret_cast<const AttentionWork*>(batch_memory_.as<char>() +
                                                     layout_.attention_work);
  // A path's part of the list; in a bucket all of it: grids stay the same.
  for (int32_t p = 0; p < kAttentionPaths; ++p) {
    part.path = static_cast<AttentionPath>(p);
    const int64_t entries = attention_work_[p];
    part.work_count = bucket_ ? bucket_->work : entries;
    if (entries > 0) ops_.emplace_back(part);
    if (!bucket_) part.work += entries;
  }
}

void CudaExecutor::Do(const AddNormOp& op) {
  // Otherwise where it lies, and so the rest of the batch, would decide whether
  // the product adds it.
  if (!IsAligned(op.residual.data)) {
    return Record(absl::InternalError(absl::StrCat(
        "a residual whose rows are not aligned to ", kOperandAlignment)));
  }
  AddNormOp norm = op;
  // The product's rows become the sum, so that it can lie nowhere else.
  if ((op.sum.data == nullptr || op.sum == op.x) &&
      AddInProduct(op.x, op.residual, &ops_))
    norm.residual = norm.sum = Matrix();
  ops_.emplace_back(norm);
}

void CudaExecutor::Do(const PickRowsOp& op) {
  if (picked_ == nullptr) {
    picked_ = op.rows;
    auto* staged = reinterpret_cast<int32_t*>(batch_staging_.as<char>() +
                                              layout_.picked_rows);
    std::fill(std::copy_n(op.rows, op.row_count, staged), staged + sequences_,
              0);
  } else if (picked_ != op.rows) {
    return Record(absl::InternalError("a pass picks rows by two lists"));
  }
  PickRowsOp pick = op;
  pick.rows = reinterpret_cast<const int32_t*>(batch_memory_.as<char>() +
                                               layout_.picked_rows);
  pick.row_count = op.y.rows;
  ops_.emplace_back(pick);
}

void CudaExecutor::Do(const PoolOp& op) {
  auto* staged = reinterpret_cast<PoolWork*>(batch_staging_.as<char>() +
                                             layout_.pool_work);
  std::copy_n(op.work, op.work_count, staged + pool_end_);
  unpooled_ -= op.work_count;
  for (int64_t i = 0; i < op.work_count; ++i) has_states_ |= op.work[i].states;
  PoolOp pool = op;
  // Padded if the rest of the batch then has room. Otherwise the ops count what
  // this batch has, and become a separate graph.
  const int64_t room =
      (plan_.batch_bytes - layout_.pool_work) / int64_t{sizeof(PoolWork)};
  if (bucket_ && pool_end_ + bucket_->work + unpooled_ <= room) {
    std::fill(staged + pool_end_ + op.work_count,
              staged + pool_end_ + bucket_->work, PoolWork());
    pool.work_count = bucket_->work;
  }
  pool.work = reinterpret_cast<const PoolWork*>(batch_memory_.as<char>() +
                                                layout_.pool_work) +
              pool_end_;
  ops_.emplace_back(pool);
  pool_end_ += pool.work_count;
}

absl::Status CudaExecutor::Finish(ForwardResult* result) {
  const int64_t bytes =
      pool_end_ == 0 ? 0 : 4 * static_cast<int64_t>(result->values.size());
  if (!Failed()) SendBatch();
  const bool observed = context_->observe_ops != nullptr;
  if (!Failed()) {
    Record(observed ? RunObserved()
                    : passes_.Run(ops_, bucket_ && bytes > 0, stream()));
  }
  Download(bytes);
  if (!Failed() && bytes > 0) {
    std::memcpy(result->values.data(), output_staging_.data(), bytes);
    if (!observed) {
      Record(passes_.TryFaster(ops_, result->values.data(), bytes, Written(),
                               stream()));
    }
  }
  const std::string note = passes_.TakeNote();
  if (!note.empty())
    result->note = absl::StrCat("cuda:", context_->ordinal, ": ", note);
  batch_ = nullptr;
  return status_;
}

void CudaExecutor::SendBatch() {
  for (RecordedOp& op : ops_) {
    if (auto* pool = std::get_if<PoolOp>(&op)) {
      pool->out =
          stores_results() ? output_staging_.as<float>() : output_.as<float>();
    }
  }
  const int64_t bytes =
      layout_.pool_work + pool_end_ * int64_t{sizeof(PoolWork)};
  if (bucket_) {
    ops_.insert(ops_.begin(),
                UploadOp{batch_staging_.data(), batch_memory_.data(), bytes});
  } else {
    Record(runtime_.CopyToDevice(batch_staging_.data(), bytes,
                                 batch_memory_.data(), stream_.get()),
           "upload");
  }
}

PassMemory CudaExecutor::Written() const {
  PassMemory memory;
  for (const Activations& matrix : matrices_)
    memory.scratch.push_back({matrix.memory.data(), matrix.bytes});
  if (plan_.quantized_bytes > 0)
    memory.scratch.push_back({quantized_.data(), plan_.quantized_bytes});
  if (plan_.workspace_bytes > 0)
    memory.scratch.push_back({workspace_.data(), plan_.workspace_bytes});
  if (bucket_) memory.batch = {batch_memory_.data(), plan_.batch_bytes};
  if (!stores_results()) memory.output = {output_.data(), plan_.output_bytes};
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
    status = RunOp(ops_[i], &runtime_, stream());
    if (status.ok()) code = mark(i + 1);
  }
  if (status.ok() && code == 0) code = runtime_.Synchronize(stream_.get());
  for (size_t i = 0; i < ops_.size() && status.ok() && code == 0; ++i) {
    OpTime time = CostOf(ops_[i], batch_->cu_seqlens, attention_rule_.allowed);
    code = runtime_.SecondsBetween(events[i].get(), events[i + 1].get(),
                                   &time.seconds);
    if (code == 0) context_->observe_ops(time);
  }
  if (status.ok() && code != 0)
    status = RuntimeError(&runtime_, code, "timing ops");
  return status;
}

void CudaExecutor::Download(int64_t bytes) {
  if (!Failed() && bytes > 0 && !stores_results()) {
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
