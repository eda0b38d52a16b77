// One forward pass at a time on its own stream. Internal to engine/device/cuda.
//
// A pass is recorded as its ops are called, and runs in Finish (fast_passes.h).
#ifndef ENCODERD_ENGINE_DEVICE_CUDA_HOST_CUDA_EXECUTOR_H_
#define ENCODERD_ENGINE_DEVICE_CUDA_HOST_CUDA_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/device/cuda/attention_path.h"
#include "engine/device/cuda/graphs/fast_passes.h"
#include "engine/device/cuda/graphs/graph_bucket.h"
#include "engine/device/cuda/graphs/recorded_ops.h"
#include "engine/device/cuda/host/attention_work.h"
#include "engine/device/cuda/host/memory.h"
#include "engine/device/cuda/host/memory_plan.h"
#include "engine/device/cuda/ops.h"
#include "engine/device/cuda/products/products.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cuda {

// What a device and its Executors share.
struct Context {
  std::shared_ptr<Runtime> runtime;
  int32_t ordinal = 0;  // cuda:N
  DType dtype = DType::kF32;
  bool graphs = true;     // CUDA graphs for small batches
  bool overlaps = false;  // launches may overlap: programmatic launch is there
  // Told of every op of each pass, with what it took; null: nobody asks.
  OpObserver observe_ops;
  // Kernels of attention that serve, by PathBit; the general one always does.
  // Constant once there is an Executor.
  uint32_t attention_paths = kAllAttentionPaths;
  // The reaches for which they do, each once; nullopt: for any. Only the
  // general kernel serves a model with another.
  std::optional<std::vector<Reach>> proved_reaches;
  // Of the products whose weights bear it.
  Operands operands = Operands::kElement;
  int64_t workspace_bytes = 0;  // of its products, for each Executor
  // Whether LayerNorm itself writes the rows in e4m3 that a product reads next
  // (norm_proof.h); else a QuantizeRowsOp does.
  bool fused_e4m3 = true;
  // Set by the first error that loses the context; nothing works after it.
  std::atomic<bool> lost{false};
};

class CudaExecutor : public Executor {
 public:
  // RESOURCE_EXHAUSTED with the numbers when the whole Session does not fit.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      std::shared_ptr<Context> context, const ExecutorLimits& limits);
  ~CudaExecutor() override;

  // INTERNAL: more than the plan has for ModelSizes::scratch_columns.
  absl::StatusOr<Matrix> Allocate(int64_t rows, int64_t cols) override;
  int64_t scratch_bytes() const override { return 0; }
  int64_t row_block() const override { return limits_.max_batch_tokens; }
  BatchRef Upload(const PackedBatch& batch) override;
  void Run(const Op& op) override {
    if (Failed()) return;
    std::visit([this](const auto& alternative) { Do(alternative); }, op);
  }
  absl::Status Finish(ForwardResult* result) override;

 private:
  CudaExecutor(std::shared_ptr<Context> context, const ExecutorLimits& limits);

  bool Failed() const { return !status_.ok(); }
  // As it is.
  template <typename O>
  void Do(const O& op) {
    ops_.emplace_back(op);
  }
  void Do(const ProductOp& op);
  void Do(const AttentionOp& op);
  void Do(const AddNormOp& op);
  void Do(const PickRowsOp& op);
  void Do(const PoolOp& op);
  // x as a product multiplies it.
  Matrix Operand(Matrix x, bool in_fp8);
  // Keeps the first error; marks the device lost where it is.
  void Record(int code, const char* what);
  void Record(const absl::Status& status);
  // Writes the batch where it is sent from; where the card will have it.
  BatchRef Stage(const PackedBatch& batch);
  // Copies the staged batch to the card, or adds the op that does; tells
  // pooling where results go.
  void SendBatch();
  // Whether pooling itself stores results in their staging. States would be
  // stored over the bus by one block for each sequence: a copy is expected to
  // be faster.
  bool stores_results() const { return bucket_ && !has_states_; }
  // Results to their staging, unless an op wrote them there; waits.
  void Download(int64_t bytes);
  // Op by op, each timed by events, for context_->observe_ops.
  absl::Status RunObserved();
  PassMemory Written() const;
  OpStream stream() const {
    return OpStream(stream_.get(), false, workspace_.data());
  }

  // Constant after Create.
  const std::shared_ptr<Context> context_;
  Runtime& runtime_;
  const ExecutorLimits limits_;
  const SessionPlan plan_;
  const AttentionRule attention_rule_;
  OwnedStream stream_;
  DeviceBuffer batch_memory_, output_;
  DeviceBuffer quantized_;  // what a product in e4m3 multiplies
  DeviceBuffer workspace_;  // what products overwrite
  PinnedBuffer batch_staging_, output_staging_;
  struct Activations {
    DeviceBuffer memory;
    int64_t bytes;
  };
  std::vector<Activations> matrices_;
  int64_t activation_bytes_ = 0;  // of all of them

  FastPasses passes_;

  // Of the pass that is recorded or runs.
  const PackedBatch* batch_ = nullptr;
  std::optional<Bucket> bucket_;  // none: it is not padded
  std::vector<int32_t> order_;
  int64_t sequences_ = 0;  // B, or more where it is padded
  BatchLayout layout_;
  RecordedOps ops_;
  AttentionCounts attention_work_ = {};  // entries
  const int32_t* picked_ = nullptr;      // the list of rows, once staged
  int64_t pool_end_ = 0;                 // entries staged
  int64_t unpooled_ = 0;                 // sequences that have none yet
  bool has_states_ = false;              // a result is states of tokens
  absl::Status status_;
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CUDA_HOST_CUDA_EXECUTOR_H_
