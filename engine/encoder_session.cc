#include "engine/encoder_session.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace encoderd {
namespace {

class EncoderSession : public Session {
 public:
  EncoderSession(const EncoderLayers& layers, const IdLimits& limits,
                 int64_t max_batch_tokens, std::unique_ptr<Executor> executor)
      : layers_(layers),
        limits_(limits),
        max_batch_tokens_(max_batch_tokens),
        executor_(std::move(executor)) {}

  absl::Status AllocateScratch() {
    const int64_t tokens = max_batch_tokens_, hidden = layers_.hidden_size;
    const int64_t block = std::min(tokens, executor_->row_block());
    absl::Status status = Allocate(tokens, hidden, &hidden_);
    if (layers_.projection != nullptr)
      status.Update(Allocate(tokens, layers_.embedding_size, &embedded_));
    status.Update(Allocate(tokens, 3 * hidden, &qkv_));
    status.Update(Allocate(tokens, hidden, &context_));
    status.Update(Allocate(block, hidden, &projected_));
    status.Update(Allocate(block, layers_.intermediate_size, &feed_forward_));
    return status;
  }

  int64_t max_batch_tokens() const override { return max_batch_tokens_; }

  absl::Status Run(const PackedBatch& batch,
                   absl::Span<const SequenceOutput> outputs,
                   ForwardResult* result) override {
    absl::Status status = Check(batch, outputs);
    if (!status.ok()) return status;
    const int32_t last_layer = PlaceOutputs(batch, outputs, result);

    const int64_t tokens = batch.num_tokens();
    const Matrix hidden = hidden_.Rows(0, tokens);
    executor_->Upload(batch);
    Embed(outputs, hidden, result);
    executor_->TakeStates(hidden, 0, outputs, result);
    for (int32_t l = 0; l < last_layer; ++l) {
      RunLayer(layers_.layers[layers_.order[l]], hidden);
      executor_->TakeStates(hidden, l + 1, outputs, result);
    }
    executor_->Pool(hidden, outputs, result);
    return executor_->Finish();
  }

 private:
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
    if (static_cast<int64_t>(outputs.size()) != batch.num_sequences()) {
      return absl::InternalError(
          absl::StrCat("a batch of ", batch.num_sequences(), " sequences with ",
                       outputs.size(), " outputs"));
    }
    const auto num_layers = static_cast<int32_t>(layers_.order.size());
    for (const SequenceOutput& output : outputs) {
      if (output.kind == SequenceOutput::Kind::kStates &&
          (output.layer < kTableSum || output.layer > num_layers)) {
        return absl::InternalError(
            absl::StrCat("layer ", output.layer,
                         " is asked for; this model has 0 to ", num_layers));
      }
    }
    if (batch.max_seqlen > limits_.max_len) {
      return absl::InternalError(
          absl::StrCat("a sequence of ", batch.max_seqlen,
                       " tokens; this model takes at most ", limits_.max_len));
    }
    return ValidateBatch(batch, limits_);
  }

  static bool WantsTableSum(absl::Span<const SequenceOutput> outputs) {
    return std::any_of(outputs.begin(), outputs.end(),
                       [](const SequenceOutput& output) {
                         return output.kind == SequenceOutput::Kind::kStates &&
                                output.layer == kTableSum;
                       });
  }

  // Sizes `result`; the layers that have to run.
  int32_t PlaceOutputs(const PackedBatch& batch,
                       absl::Span<const SequenceOutput> outputs,
                       ForwardResult* result) const {
    int32_t last_layer = 0;
    int64_t end = 0;
    result->offsets.clear();
    result->offsets.push_back(0);
    for (size_t b = 0; b < outputs.size(); ++b) {
      const bool pooled = outputs[b].kind == SequenceOutput::Kind::kPooled;
      const int64_t rows =
          pooled ? 1 : batch.cu_seqlens[b + 1] - batch.cu_seqlens[b];
      last_layer = std::max(last_layer,
                            pooled ? static_cast<int32_t>(layers_.order.size())
                                   : outputs[b].layer);
      end += rows * (!pooled && outputs[b].layer == kTableSum
                         ? layers_.table_columns()
                         : layers_.hidden_size);
      result->offsets.push_back(end);
    }
    result->values.resize(end);
    result->note.clear();
    return last_layer;
  }

  // The embedding block: hidden [T,H], projected from [T,E] where it is
  // factored.
  void Embed(absl::Span<const SequenceOutput> outputs, Matrix hidden,
             ForwardResult* result) {
    const bool projects = layers_.projection != nullptr;
    const Matrix rows = projects ? embedded_.Rows(0, hidden.rows) : hidden;
    if (WantsTableSum(outputs)) {
      executor_->SumTables(*layers_.embeddings, rows);
      executor_->TakeStates(rows, kTableSum, outputs, result);
    }
    executor_->EmbedTokens(*layers_.embeddings, rows);
    if (projects) executor_->Linear(rows, *layers_.projection, hidden);
  }

  // hidden [T,H] -> the layer's output, in place. What comes after attention
  // knows no sequences, so it runs in blocks of rows that stay in cache.
  void RunLayer(const EncoderLayer& layer, Matrix hidden) {
    const int64_t tokens = hidden.rows;
    const Matrix qkv = qkv_.Rows(0, tokens);
    const Matrix context = context_.Rows(0, tokens);
    executor_->Linear(hidden, *layer.qkv, qkv);
    executor_->Attention(qkv, layers_.num_attention_heads,
                         layers_.attention_bias.get(), context);
    for (int64_t r = 0; r < tokens; r += projected_.rows) {
      const int64_t rows = std::min(projected_.rows, tokens - r);
      const Matrix x = hidden.Rows(r, rows);
      const Matrix y = projected_.Rows(0, rows);
      const Matrix inner = feed_forward_.Rows(0, rows);
      executor_->Linear(context.Rows(r, rows), *layer.attention_output, y);
      executor_->AddLayerNorm(y, x, *layer.attention_norm, x);
      executor_->Linear(x, *layer.feed_forward_in, inner);
      executor_->Linear(inner, *layer.feed_forward_out, y);
      executor_->AddLayerNorm(y, x, *layer.feed_forward_norm, x);
    }
  }

  const EncoderLayers& layers_;
  const IdLimits limits_;
  const int64_t max_batch_tokens_;
  const std::unique_ptr<Executor> executor_;
  // Scratch, owned by the executor.
  Matrix embedded_;      // [max T,E], only with a projection
  Matrix hidden_;        // [max T,H]
  Matrix qkv_;           // [max T,3H]
  Matrix context_;       // [max T,H]
  Matrix projected_;     // [row block,H]
  Matrix feed_forward_;  // [row block,F]
};

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> NewEncoderSession(
    const Device& device, const EncoderLayers& layers, const IdLimits& limits,
    const SessionOptions& options) {
  int64_t tokens = options.max_batch_tokens;
  if (tokens <= 0) tokens = device.default_batch_tokens();
  tokens = std::max<int64_t>(tokens, limits.max_len);

  ExecutorLimits executor_limits;
  executor_limits.max_batch_tokens = tokens;
  executor_limits.max_batch_sequences = tokens;
  executor_limits.max_seqlen = limits.max_len;
  executor_limits.hidden_size = layers.hidden_size;
  executor_limits.embedding_size = layers.embedding_size;
  executor_limits.num_attention_heads = layers.num_attention_heads;
  executor_limits.intermediate_size = layers.intermediate_size;
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      device.NewExecutor(executor_limits);
  if (!executor.ok()) return executor.status();
  auto session = absl::make_unique<EncoderSession>(layers, limits, tokens,
                                                   *std::move(executor));
  absl::Status status = session->AllocateScratch();
  if (!status.ok()) return status;
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace encoderd
