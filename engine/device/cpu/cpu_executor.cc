#include "engine/device/cpu/cpu_executor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/pooling.h"
#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/op_parts.h"

namespace encoderd {
namespace cpu {
namespace {

Matrix Some(const Matrix& matrix, Range rows) {
  return matrix.data == nullptr ? matrix
                                : RowsOf(matrix, rows.first, rows.count);
}

// An op for some of its rows.
EmbedOp Some(EmbedOp op, Range rows) {
  op.batch.rows = rows.count;
  op.batch.token_ids += rows.first;
  op.batch.position_ids += rows.first;
  op.batch.segment_ids += rows.first;
  op.out = Some(op.out, rows);
  return op;
}
RotateOp Some(RotateOp op, Range rows) {
  op.qkv = Some(op.qkv, rows);
  op.position_ids += rows.first;
  return op;
}
GateOp Some(GateOp op, Range rows) {
  op.x = Some(op.x, rows);
  op.y = Some(op.y, rows);
  return op;
}
AddNormOp Some(AddNormOp op, Range rows) {
  op.x = Some(op.x, rows);
  op.residual = Some(op.residual, rows);
  op.sum = Some(op.sum, rows);
  op.y = Some(op.y, rows);
  return op;
}

int64_t RowsIn(const EmbedOp& op) { return op.batch.rows; }
int64_t RowsIn(const RotateOp& op) { return op.qkv.rows; }
template <typename O>
int64_t RowsIn(const O& op) {
  return op.x.rows;
}

// Points `some`, query rows of a sequence that begins at row `first` of op.qkv,
// to its rows of op.context. Of needed rows `some` keeps its own; false: it has
// none.
bool PlaceContext(const AttentionOp& op, int64_t sequence, int64_t first,
                  AttentionOp* some) {
  if (op.needed_rows == nullptr) {
    some->context =
        RowsOf(op.context, first + some->first_query, some->query_count);
    return true;
  }
  const int64_t row = op.needed_rows[sequence];
  if (row < some->first_query || row >= some->first_query + some->query_count)
    return false;
  some->first_query = row;
  some->query_count = 1;
  some->context = RowsOf(op.context, sequence - op.first_sequence, 1);
  return true;
}

class CpuExecutor : public Executor {
 public:
  CpuExecutor(const Kernels& kernels, const ExecutorLimits& limits, Team* team)
      : kernels_(kernels), limits_(limits), team_(team) {
    if (!limits_.in_pauses) team_->Join();
  }
  ~CpuExecutor() override {
    if (!limits_.in_pauses) team_->Leave();
  }
  CpuExecutor(const CpuExecutor&) = delete;
  CpuExecutor& operator=(const CpuExecutor&) = delete;

  // product_bytes: of scratch, for the widest product.
  absl::Status TakeScratch(int64_t product_bytes);

  absl::StatusOr<Matrix> Allocate(int64_t rows, int64_t cols) override;
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  int64_t row_block() const override { return kProductRows; }
  bool attends_needed_rows() const override { return true; }
  BatchRef Upload(const PackedBatch& batch) override;
  void SetPauses(Pauses* pauses) override { pauses_ = pauses; }
  void Run(const Op& op) override {
    if (Failed()) return;
    if (pauses_ != nullptr && pauses_->Wanted()) Pause();
    std::visit([this](const auto& alternative) { Do(alternative); }, op);
  }
  absl::Status Finish(ForwardResult* result) override {
    batch_ = nullptr;
    pass_.reset();
    return status_;
  }

 private:
  // The pass gives its cores away meanwhile.
  void Pause() {
    pass_.reset();
    pauses_->Run();
    pass_.emplace(team_);
  }

  DType dtype() const { return kernels_.bf16 ? DType::kBF16 : DType::kF32; }
  bool Failed() const { return !status_.ok(); }

  // By the kernel alone, row by row.
  template <typename O>
  void Do(const O& op) {
    const int64_t rows = RowsIn(op);
    pass_->Run(pass_->Threads(MostRowParts(rows)), 1, scratch_.data(),
               [&](const Team::Slice& slice, void* scratch) {
                 RunKernel(Some(op, RowsOfPart(rows, slice.part, slice.parts)),
                           scratch);
               });
  }
  void Do(const ProductOp& op);
  void Do(const AttentionOp& op);
  void Do(const PickRowsOp& op);
  void Do(const PoolOp& op);

  template <typename O>
  void RunKernel(const O& op, void* scratch) const {
    static_cast<const Kernel<O>&>(kernels_).run(op, scratch);
  }
  void Multiply(const ProductOp& op, const ProductBlock& block,
                int64_t next_panel, void* scratch) const;
  QueryLine LineOf(const AttentionOp& op, int64_t sequence) const;
  // What the cost begin .. end - 1 of all sequences pays for.
  void Attend(const AttentionOp& op, int64_t begin, int64_t end,
              void* scratch) const;

  // As Allocate, counted in scratch_bytes_.
  absl::Status Take(int64_t bytes, absl::string_view what,
                    AlignedBuffer* buffer);

  // Constant after TakeScratch.
  const Kernels& kernels_;
  const ExecutorLimits limits_;
  Team* const team_;
  AlignedBuffer scratch_;  // of the calling thread, for one op at a time
  AlignedBuffer states_;   // [max_seqlen,H], bf16 only
  std::vector<AlignedBuffer> matrices_;
  int64_t scratch_bytes_ = 0;
  Pauses* pauses_ = nullptr;

  // Of the pass that runs.
  const PackedBatch* batch_ = nullptr;
  std::optional<Team::Pass> pass_;
  absl::Status status_;
};

absl::Status CpuExecutor::TakeScratch(int64_t product_bytes) {
  const ModelSizes& model = limits_.model;
  const int64_t row_bytes =
      int64_t{4} * std::max(model.hidden_size, model.embedding_size);
  const int64_t bytes = std::max(
      {product_bytes, row_bytes,
       kernels_.attention_scratch_bytes(model.max_len, model.head_size())});
  absl::Status status = Take(bytes, "scratch", &scratch_);
  status.Update(team_->Reserve(bytes));
  if (kernels_.bf16) {
    status.Update(Take(int64_t{4} * model.max_len * model.hidden_size,
                       "states to pool", &states_));
  }
  return status;
}

absl::Status CpuExecutor::Take(int64_t bytes, absl::string_view what,
                               AlignedBuffer* buffer) {
  const absl::Status status = encoderd::cpu::Allocate(bytes, what, buffer);
  if (status.ok()) scratch_bytes_ += bytes;
  return status;
}

absl::StatusOr<Matrix> CpuExecutor::Allocate(int64_t rows, int64_t cols) {
  AlignedBuffer buffer;
  absl::Status status =
      Take(rows * cols * DTypeBytes(dtype()), "activations", &buffer);
  if (!status.ok()) return status;
  Matrix matrix{buffer.data(), rows, cols, dtype()};
  matrices_.push_back(std::move(buffer));
  return matrix;
}

BatchRef CpuExecutor::Upload(const PackedBatch& batch) {
  batch_ = &batch;
  pass_.emplace(team_);
  status_ = absl::OkStatus();
  if (batch.num_tokens() > limits_.max_batch_tokens ||
      batch.num_sequences() > limits_.max_batch_sequences ||
      batch.max_seqlen > limits_.model.max_len) {
    status_ = absl::InternalError(absl::StrCat(
        "a batch of ", batch.num_tokens(), " tokens in ", batch.num_sequences(),
        " sequences of up to ", batch.max_seqlen, " exceeds this executor's ",
        limits_.max_batch_tokens, ", ", limits_.max_batch_sequences, " and ",
        limits_.model.max_len));
  }
  return {batch.num_tokens(), batch.token_ids.data(), batch.position_ids.data(),
          batch.segment_ids.data(), batch.num_sequences()};
}

void CpuExecutor::Multiply(const ProductOp& op, const ProductBlock& block,
                           int64_t next_panel, void* scratch) const {
  const Product& product = static_cast<const CpuLinear&>(*op.weights).product;
  const int64_t end = block.rows.end();
  for (int64_t r = block.rows.first; r < end; r += kProductRows) {
    const Range rows = {r, std::min(kProductRows, end - r)};
    const int64_t next = rows.end() < end ? block.panels.first : next_panel;
    product.Run(Some(op.x, rows),
                {block.panels.first, block.panels.count, next},
                Some(op.y, rows), scratch);
  }
}

void CpuExecutor::Do(const ProductOp& op) {
  const Product& product = static_cast<const CpuLinear&>(*op.weights).product;
  const ProductSize size = {op.x.rows, product.panels(),
                            product.prepare_quarters()};
  ProductGrid grid = GridOf(size, team_->cores());
  const int32_t threads = pass_->Threads(grid.parts());
  if (threads < grid.parts()) grid = GridOf(size, threads);
  pass_->Run(grid.parts(), grid.slices(), scratch_.data(),
             [&](const Team::Slice& slice, void* scratch) {
               const auto block = [&](int32_t index) {
                 return SliceOf(grid, size, slice.part, index);
               };
               const bool last = slice.index + 1 == slice.count;
               Multiply(op, block(slice.index),
                        last ? -1 : block(slice.index + 1).panels.first,
                        scratch);
             });
}

QueryLine CpuExecutor::LineOf(const AttentionOp& op, int64_t sequence) const {
  return {op.heads,
          batch_->cu_seqlens[sequence + 1] - batch_->cu_seqlens[sequence]};
}

void CpuExecutor::Attend(const AttentionOp& op, int64_t begin, int64_t end,
                         void* scratch) const {
  AttentionOp some = op;
  int64_t before = 0;  // the cost of the sequences before this one
  for (int64_t b = op.first_sequence; before < end; ++b) {
    const QueryLine line = LineOf(op, b);
    const int64_t first =
        batch_->cu_seqlens[b] - batch_->cu_seqlens[op.first_sequence];
    some.qkv = RowsOf(op.qkv, first, line.length);
    Range rows = QueriesBetween(line, begin - before, end - before);
    while (rows.count > 0) {
      TakePiece(&rows, &some);
      if (PlaceContext(op, b, first, &some)) RunKernel(some, scratch);
    }
    before += CostOf(line);
  }
}

void CpuExecutor::Do(const AttentionOp& op) {
  const int64_t sequences =
      op.sequence_count == 0 ? batch_->num_sequences() : op.sequence_count;
  int64_t cost = 0, most_of_line = 0;
  for (int64_t b = 0; b < sequences; ++b) {
    const int64_t of_line = CostOf(LineOf(op, op.first_sequence + b));
    cost += of_line;
    most_of_line = std::max(most_of_line, of_line);
  }
  const int32_t parts =
      pass_->Threads(MostQueryParts(op.heads, sequences, op.qkv.rows));
  const int32_t slices =
      parts == 1 ? 1 : QuerySlices(cost / parts, most_of_line / op.heads);
  pass_->Run(parts, slices, scratch_.data(),
             [&](const Team::Slice& slice, void* scratch) {
               const int64_t all = int64_t{slice.parts} * slice.count;
               const int64_t at =
                   int64_t{slice.part} * slice.count + slice.index;
               Attend(op, cost * at / all, cost * (at + 1) / all, scratch);
             });
}

void CpuExecutor::Do(const PickRowsOp& op) {
  for (int64_t r = 0; r < op.row_count; ++r) {
    std::memcpy(RowsOf(op.y, r, 1).data, RowsOf(op.x, op.rows[r], 1).data,
                op.y.cols * DTypeBytes(op.y.dtype));
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
    const Kernels& kernels, const ExecutorLimits& limits, int64_t product_bytes,
    Team* team) {
  auto executor = std::make_unique<CpuExecutor>(kernels, limits, team);
  const absl::Status status = executor->TakeScratch(product_bytes);
  if (!status.ok()) return status;
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace cpu
}  // namespace encoderd
