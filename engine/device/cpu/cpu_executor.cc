#include "engine/device/cpu/cpu_executor.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/base/pooling.h"
#include "engine/device/cpu/aligned_buffer.h"

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

class CpuExecutor : public Executor {
 public:
  CpuExecutor(const Kernels& kernels, const ExecutorLimits& limits)
      : kernels_(kernels), limits_(limits) {}

  absl::Status TakeScratch(int64_t product_scratch_bytes);

  absl::StatusOr<Matrix> Allocate(int64_t rows, int64_t cols) override;
  int64_t row_block() const override { return kProductRows; }
  BatchRef Upload(const PackedBatch& batch) override;
  void Run(const Op& op) override {
    if (Failed()) return;
    std::visit([this](const auto& alternative) { Do(alternative); }, op);
  }
  absl::Status Finish(ForwardResult* result) override {
    batch_ = nullptr;
    return status_;
  }

 private:
  DType dtype() const { return kernels_.bf16 ? DType::kBF16 : DType::kF32; }
  bool Failed() const { return !status_.ok(); }

  // By the kernel alone.
  template <typename O>
  void Do(const O& op) {
    RunKernel(op, row_.data());
  }
  void Do(const ProductOp& op);
  void Do(const AttentionOp& op);
  void Do(const PoolOp& op);

  template <typename O>
  void RunKernel(const O& op, void* scratch) {
    static_cast<const Kernel<O>&>(kernels_).run(op, scratch);
  }

  // Constant after TakeScratch.
  const Kernels& kernels_;
  const ExecutorLimits limits_;
  AlignedBuffer product_scratch_;
  AlignedBuffer attention_scratch_;
  AlignedBuffer row_;     // [H] or [E], whichever is more
  AlignedBuffer states_;  // [max_seqlen,H], bf16 only
  std::vector<AlignedBuffer> matrices_;

  // Of the pass that runs.
  const PackedBatch* batch_ = nullptr;
  absl::Status status_;
};

absl::Status CpuExecutor::TakeScratch(int64_t product_scratch_bytes) {
  const ModelSizes& model = limits_.model;
  absl::Status status =
      Reserve(product_scratch_bytes, "product scratch", &product_scratch_);
  status.Update(Reserve(
      kernels_.attention_scratch_bytes(model.max_len, model.head_size()),
      "attention scratch", &attention_scratch_));
  status.Update(Reserve(std::max(model.hidden_size, model.embedding_size) * 4,
                        "row scratch", &row_));
  if (kernels_.bf16) {
    status.Update(Reserve(int64_t{4} * model.max_len * model.hidden_size,
                          "pooling scratch", &states_));
  }
  return status;
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

BatchRef CpuExecutor::Upload(const PackedBatch& batch) {
  batch_ = &batch;
  status_ = absl::OkStatus();
  if (batch.num_tokens() > limits_.max_batch_tokens ||
      batch.num_sequences() > limits_.max_batch_sequences ||
      batch.max_seqlen > limits_.model.max_len) {
    status_ = absl::InternalError(absl::StrCat(
        "a batch of ", batch.num_tokens(), " tokens in ", batch.num_sequences(),
        " sequences of up to ", batch.max_seqlen, " is over this executor's ",
        limits_.max_batch_tokens, ", ", limits_.max_batch_sequences, " and ",
        limits_.model.max_len));
  }
  return {batch.num_tokens(), batch.token_ids.data(), batch.position_ids.data(),
          batch.segment_ids.data()};
}

void CpuExecutor::Do(const ProductOp& op) {
  const auto& linear = static_cast<const CpuLinear&>(*op.weights);
  for (int64_t r = 0; r < op.x.rows && !Failed(); r += kProductRows) {
    const int64_t rows = std::min(kProductRows, op.x.rows - r);
    const Matrix y = RowsOf(op.y, r, rows);
    status_ = linear.product->Run(RowsOf(op.x, r, rows).data, rows, y.data,
                                  product_scratch_.data());
    if (linear.activation != Activation::kNone)
      kernels_.activate(linear.activation, rows * y.cols, y.data);
  }
}

void CpuExecutor::Do(const AttentionOp& op) {
  AttentionOp of_sequence = op;
  for (int64_t b = 0; b < batch_->num_sequences(); ++b) {
    const int64_t first = batch_->cu_seqlens[b];
    const int64_t length = batch_->cu_seqlens[b + 1] - first;
    of_sequence.qkv = RowsOf(op.qkv, first, length);
    of_sequence.context = RowsOf(op.context, first, length);
    RunKernel(of_sequence, attention_scratch_.data());
  }
}

void CpuExecutor::Do(const PoolOp& op) {
  for (int64_t w = 0; w < op.work_count; ++w) {
    const PoolWork& work = op.work[w];
    if (work.length == 0) continue;
    const Matrix x = RowsOf(op.x, work.first, work.length);
    float* const out = op.out + work.out_offset;
    if (work.states) {
      kernels_.to_float(x.data, x.rows * x.cols, out);
      continue;
    }
    const float* states = static_cast<const float*>(x.data);
    if (kernels_.bf16) {
      kernels_.to_float(x.data, x.rows * x.cols, states_.floats());
      states = states_.floats();
    }
    PoolStates(work.pooling, states, x.rows, x.cols, out);
    if (work.normalize) NormalizeL2(out, x.cols);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> NewCpuExecutor(
    const Kernels& kernels, const ExecutorLimits& limits,
    int64_t product_scratch_bytes) {
  auto executor = absl::make_unique<CpuExecutor>(kernels, limits);
  const absl::Status status = executor->TakeScratch(product_scratch_bytes);
  if (!status.ok()) return status;
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace cpu
}  // namespace encoderd
