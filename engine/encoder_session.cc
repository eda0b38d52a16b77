#include "engine/encoder_session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/requested_outputs.h"
#include "engine/row_groups.h"

namespace encoderd {
namespace {

// In place of a layer: what is pooled of the last one's output.
constexpr int32_t kPooled = kTableSum - 1;

class EncoderSession : public Session {
 public:
  EncoderSession(const EncoderLayers& layers, const IdLimits& limits,
                 int64_t max_batch_tokens, std::unique_ptr<Executor> executor)
      : layers_(layers),
        limits_(limits),
        max_batch_tokens_(max_batch_tokens),
        executor_(std::move(executor)) {}

  // ModelSizes::scratch_columns counts these columns.
  absl::Status AllocateScratch(int64_t max_len) {
    const ModelSizes& sizes = layers_.sizes;
    const int64_t tokens = max_batch_tokens_, hidden = sizes.hidden_size;
    const int64_t block = std::min(tokens, executor_->row_block());
    absl::Status status = Allocate(tokens, hidden, &hidden_);
    if (layers_.projection != nullptr)
      status.Update(Allocate(tokens, sizes.embedding_size, &embedded_));
    if (sizes.pre_norm) status.Update(Allocate(tokens, hidden, &normed_));
    const int64_t group =
        MostRowsOfGroup(tokens, executor_->row_block(), max_len);
    status.Update(Allocate(group, 3 * hidden, &qkv_));
    status.Update(Allocate(group, hidden, &context_));
    status.Update(Allocate(block, hidden, &projected_));
    status.Update(Allocate(block, sizes.inner_columns(), &inner_));
    if (sizes.gated)
      status.Update(Allocate(block, sizes.intermediate_size, &gated_));
    return status;
  }

  int64_t max_batch_tokens() const override { return max_batch_tokens_; }
  int64_t scratch_bytes() const override { return executor_->scratch_bytes(); }

  void SetPauses(Pauses* pauses) override { executor_->SetPauses(pauses); }

  absl::Status Run(const PackedBatch& batch,
                   absl::Span<const SequenceOutput> outputs,
                   ForwardResult* result) override {
    absl::Status status = Check(batch, outputs);
    if (!status.ok()) return status;
    PlaceOutputs(batch, outputs, layers_.sizes, result);
    const int32_t layers = LayersNeeded(outputs, num_layers());
    needed_rows_.clear();
    if (executor_->attends_needed_rows() ||
        batch.num_tokens() <= executor_->row_block())
      ListNeededRows(batch, outputs, num_layers(), &needed_rows_);
    picked_rows_.clear();
    for (size_t b = 0; b < needed_rows_.size(); ++b)
      picked_rows_.push_back(batch.cu_seqlens[b] + needed_rows_[b]);

    pool_work_.reserve(outputs.size());  // nothing may throw during a pass

    batch_ = executor_->Upload(batch);
    const Matrix x = RowsOf(hidden_, 0, batch_.rows);
    Embed(batch, outputs, x, result);
    Give(x, 0, batch, outputs, result);
    const bool pre_norm = layers_.sizes.pre_norm;
    const Matrix n = pre_norm ? RowsOf(normed_, 0, batch_.rows) : x;
    const auto& first = layers_.steps.front().weights->attention_norm;
    if (pre_norm && first != nullptr)
      executor_->Run(AddNormOp{x, Matrix(), Here(*first).norm, Matrix(), n});
    for (int32_t l = 0; l < layers; ++l) {
      const bool last = l + 1 == num_layers();
      if (last && !needed_rows_.empty()) {
        RunLayerForNeededRows(layers_.steps[l], batch, n);
        break;
      }
      RunLayer(layers_.steps[l], batch, n);
      Give(last ? n : RowsOf(hidden_, 0, batch_.rows), l + 1, batch, outputs,
           result);
    }
    Give(needed_rows_.empty() ? n : RowsOf(n, 0, batch_.sequences), kPooled,
         batch, outputs, result);
    return executor_->Finish(result);
  }

 private:
  int32_t num_layers() const { return layers_.sizes.num_hidden_layers; }

  absl::Status Allocate(int64_t rows, int64_t cols, Matrix* matrix) {
    absl::StatusOr<Matrix> allocated = executor_->Allocate(rows, cols);
    if (allocated.ok()) *matrix = *allocated;
    return allocated.status();
  }

  absl::Status Check(const PackedBatch& batch,
                     absl::Span<const SequenceOutput> outputs) const {
    if (batch.num_tokens() > max_batch_tokens_) {
      return absl::InternalError(absl::StrCat(
          "a batch of ", batch.num_tokens(),
          " tokens; this session takes at most ", max_batch_tokens_));
    }
    const absl::Status status = CheckOutputs(batch, outputs, num_layers());
    if (!status.ok()) return status;
    if (batch.max_seqlen > limits_.max_len) {
      return absl::InternalError(
          absl::StrCat("a sequence of ", batch.max_seqlen,
                       " tokens; this model takes at most ", limits_.max_len));
    }
    return ValidateBatch(batch, limits_);
  }

  // What the ops of this session's card are given of some weights.
  template <typename Weights>
  const Weights& Here(const Weights& weights) const {
    return weights.On(executor_->card());
  }

  // Gives every sequence that wants the states of `layer` its rows of x, or for
  // kPooled every one that wants a pooled vector that of its rows, or of row b
  // where x has only the needed rows.
  void Give(Matrix x, int32_t layer, const PackedBatch& batch,
            absl::Span<const SequenceOutput> outputs, ForwardResult* result) {
    pool_work_.clear();
    for (size_t b = 0; b < outputs.size(); ++b) {
      const SequenceOutput& output = outputs[b];
      const bool states = output.kind == SequenceOutput::Kind::kStates;
      if ((states ? output.layer : kPooled) != layer) continue;
      const bool one = !states && !needed_rows_.empty();
      const int32_t first = one ? static_cast<int32_t>(b) : batch.cu_seqlens[b];
      const int32_t length = one ? 1 : batch.cu_seqlens[b + 1] - first;
      pool_work_.push_back({result->offsets[b], first, length, output.pooling,
                            states, !states && output.normalize});
    }
    if (pool_work_.empty()) return;
    executor_->Run(PoolOp{x, pool_work_.data(),
                          static_cast<int64_t>(pool_work_.size()),
                          result->values.data()});
  }

  // The embedding block: hidden [T,H], projected from [T,E] where it is
  // factored.
  void Embed(const PackedBatch& batch, absl::Span<const SequenceOutput> outputs,
             Matrix hidden, ForwardResult* result) {
    const bool projects = layers_.projection != nullptr;
    const Matrix rows = projects ? RowsOf(embedded_, 0, hidden.rows) : hidden;
    const DeviceEmbeddings& embeddings = Here(*layers_.embeddings);
    const EmbedOp sum = {embeddings.tables, batch_, NormRef(), rows};
    if (WantsTableSum(outputs)) {
      executor_->Run(sum);
      Give(rows, kTableSum, batch, outputs, result);
    }
    EmbedOp normed = sum;
    if (layers_.embedding_norm) normed.norm = embeddings.norm;
    executor_->Run(normed);
    if (projects) Multiply(rows, layers_.projection, hidden);
  }

  void Multiply(Matrix x, const std::unique_ptr<DeviceLinear>& weights,
                Matrix y) {
    executor_->Run(ProductOp{x, &Here(*weights), y});
  }

  // n = LayerNorm(states + projected), of `rows` rows from `first` on. Pre-norm
  // the sum becomes the states: where all rows are at hand it stays in those of
  // the product, which a card then adds to, and the two matrices swap places.
  void AddNorm(int64_t first, int64_t rows, const DeviceNorm& norm, Matrix n) {
    AddNorm(RowsOf(hidden_, first, rows), first, norm, n);
  }
  // The same of states x that are elsewhere: hidden_ has the sum.
  void AddNorm(Matrix x, int64_t first, const DeviceNorm& norm, Matrix n) {
    const Matrix y = RowsOf(projected_, 0, x.rows);
    const bool swaps = projected_.rows == hidden_.rows;
    Matrix sum;
    if (layers_.sizes.pre_norm)
      sum = swaps ? y : RowsOf(hidden_, first, x.rows);
    executor_->Run(AddNormOp{y, x, Here(norm).norm, sum, n});
    if (sum.data != nullptr && swaps) std::swap(hidden_, projected_);
  }

  RowGroup GroupFrom(int64_t first_sequence, const PackedBatch& batch) const {
    return RowGroupFrom(first_sequence, batch, executor_->row_block(),
                        batch_.rows);
  }

  void Rotate(const LayerSpec& spec, const RowGroup& group, Matrix qkv) {
    if (spec.rotation < 0) return;
    const DeviceRotation& by = Here(*layers_.rotations[spec.rotation]);
    executor_->Run(RotateOp{qkv, layers_.sizes.num_attention_heads,
                            layers_.sizes.head_size(), by.cos, by.sin, by.pairs,
                            batch_.position_ids + group.first});
  }

  // needed_rows: as AttentionOp has it.
  void Attend(const LayerSpec& spec, const RowGroup& group, Matrix qkv,
              const int32_t* needed_rows, Matrix context) {
    AttentionOp op;
    op.qkv = qkv;
    op.heads = layers_.sizes.num_attention_heads;
    op.head_size = layers_.sizes.head_size();
    op.reach = spec.reach;
    op.first_sequence = group.first_sequence;
    op.sequence_count = group.end_sequence - group.first_sequence;
    op.needed_rows = needed_rows;
    op.context = context;
    if (layers_.attention_bias != nullptr) {
      const DeviceAttentionBias& bias = Here(*layers_.attention_bias);
      op.bias = bias.bias;
      op.bias_stride = bias.bias_stride;
    }
    executor_->Run(op);
  }

  // n [T,H]: what the layer reads of the states and leaves for the next one,
  // the states themselves post-norm. Sequences are independent, so a layer runs
  // for one group after another, whose rows stay in cache.
  void RunLayer(const EncoderStep& step, const PackedBatch& batch, Matrix n) {
    for (int64_t b = 0; b < batch.num_sequences();) {
      const RowGroup group = GroupFrom(b, batch);
      RunGroup(step, group, n);
      b = group.end_sequence;
    }
  }

  // The last layer where only one row of each sequence is needed: the first
  // rows of n are theirs afterwards. What comes after attention runs for these
  // rows, of as many groups as fit in a row block.
  //
  // Row b is at or before the first row of sequence b, in n and in hidden_, so
  // writing it overwrites nothing that is still to be read.
  void RunLayerForNeededRows(const EncoderStep& step, const PackedBatch& batch,
                             Matrix n) {
    if (!executor_->attends_needed_rows()) {
      const RowGroup all = GroupFrom(0, batch);
      const Matrix context = RowsOf(context_, 0, all.rows);
      AttendGroup(step, all, n, nullptr, context);
      // Each at the beginning of its memory, where products want it.
      const Matrix picked = InsteadOfQkv(batch_.sequences);
      Pick(context, 0, picked);
      return FinishNeededRows(step, picked, RowsOf(context_, 0, picked.rows), 0,
                              n);
    }
    for (int64_t b = 0; b < batch.num_sequences();) {
      const int64_t first = b;
      while (b < batch.num_sequences()) {
        const RowGroup group = GroupFrom(b, batch);
        if (group.end_sequence - first > projected_.rows) break;
        AttendGroup(step, group, n, needed_rows_.data(),
                    RowsOf(context_, b - first, group.end_sequence - b));
        b = group.end_sequence;
      }
      FinishNeededRows(step, RowsOf(context_, 0, b - first),
                       InsteadOfQkv(b - first), first, n);
    }
  }

  // What comes after attention, for the needed rows of sequences from `first`
  // on: `context` is theirs, `states` room for what it is added to.
  void FinishNeededRows(const EncoderStep& step, Matrix context, Matrix states,
                        int64_t first, Matrix n) {
    const int64_t rows = context.rows;
    Pick(hidden_, first, states);
    Multiply(context, step.weights->attention_output,
             RowsOf(projected_, 0, rows));
    AddNorm(states, first, *step.after_attention, RowsOf(n, first, rows));
    FeedForward(step, first, rows, n);
  }

  // y = the needed rows of x, those of sequences from `first` on.
  void Pick(Matrix x, int64_t first, Matrix y) {
    const auto left = static_cast<int64_t>(picked_rows_.size()) - first;
    executor_->Run(
        PickRowsOp{x, picked_rows_.data() + first, std::min(left, y.rows), y});
  }

  // [rows,H] in the memory of Q|K|V, after attention.
  Matrix InsteadOfQkv(int64_t rows) const {
    return {qkv_.data, rows, layers_.sizes.hidden_size, qkv_.dtype};
  }

  void AttendGroup(const EncoderStep& step, const RowGroup& group, Matrix n,
                   const int32_t* needed_rows, Matrix context) {
    const EncoderLayer& layer = *step.weights;
    const Matrix qkv = RowsOf(qkv_, 0, group.rows);
    const bool normed = layer.attention_norm != nullptr;
    Multiply(RowsOf(normed ? n : hidden_, group.first, group.rows), layer.qkv,
             qkv);
    Rotate(step.spec, group, qkv);
    Attend(step.spec, group, qkv, needed_rows, context);
  }

  // The second half of a layer, of at most a row block of rows.
  void FeedForward(const EncoderStep& step, int64_t first, int64_t rows,
                   Matrix n) {
    const EncoderLayer& layer = *step.weights;
    const Matrix ns = RowsOf(n, first, rows);
    Matrix inner = RowsOf(inner_, 0, rows);
    Multiply(ns, layer.feed_forward_in, inner);
    if (layers_.sizes.gated) {
      const Matrix gated = RowsOf(gated_, 0, rows);
      executor_->Run(GateOp{inner, layers_.activation, gated});
      inner = gated;
    }
    Multiply(inner, layer.feed_forward_out, RowsOf(projected_, 0, rows));
    AddNorm(first, rows, *step.after_feed_forward, ns);
  }

  // What comes after attention knows no sequences: it runs in row blocks.
  void RunGroup(const EncoderStep& step, const RowGroup& group, Matrix n) {
    const Matrix context = RowsOf(context_, 0, group.rows);
    AttendGroup(step, group, n, nullptr, context);
    const int64_t block = projected_.rows;
    for (int64_t r = 0; r < group.rows; r += block) {
      const int64_t first = group.first + r;
      const int64_t rows = std::min(block, group.rows - r);
      Multiply(RowsOf(context, r, rows), step.weights->attention_output,
               RowsOf(projected_, 0, rows));
      AddNorm(first, rows, *step.after_attention, RowsOf(n, first, rows));
      FeedForward(step, first, rows, n);
    }
  }

  const EncoderLayers& layers_;
  const IdLimits limits_;
  const int64_t max_batch_tokens_;
  const std::unique_ptr<Executor> executor_;
  // Scratch, owned by the executor.
  Matrix embedded_;   // [max T,E], only with a projection
  Matrix hidden_;     // [max T,H]
  Matrix normed_;     // [max T,H], only pre-norm
  Matrix qkv_;        // [most rows of a group,3H]
  Matrix context_;    // [most rows of a group,H]
  Matrix projected_;  // [row block,H]
  Matrix inner_;      // [row block,F], gated [row block,2F]
  Matrix gated_;      // [row block,F], only gated
  // Of the pass that runs.
  BatchRef batch_;
  std::vector<PoolWork> pool_work_;
  std::vector<int32_t> needed_rows_;  // [B], in their sequences, or empty
  std::vector<int32_t> picked_rows_;  // the same in the batch
};

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> NewEncoderSession(
    const Device& device, const EncoderLayers& layers, const IdLimits& limits,
    const SessionOptions& options) {
  IdLimits here = limits;
  if (options.max_len > 0)
    here.max_len = std::min(here.max_len, options.max_len);
  int64_t tokens = options.max_batch_tokens;
  if (tokens <= 0) tokens = device.default_batch_tokens();
  tokens = std::max<int64_t>(tokens, here.max_len);

  ExecutorLimits sizes = {tokens, tokens, layers.sizes, options.in_pauses};
  sizes.model.max_len = std::min(sizes.model.max_len, here.max_len);
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      device.NewExecutor(sizes);
  if (!executor.ok()) return executor.status();
  auto session = std::make_unique<EncoderSession>(layers, here, tokens,
                                                  *std::move(executor));
  absl::Status status = session->AllocateScratch(here.max_len);
  if (!status.ok()) return status;
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace encoderd
