// One forward pass at a time on the calling thread; the constant weights that
// it reads. Internal to engine/device/cpu.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_CPU_EXECUTOR_H_
#define ENCODERD_ENGINE_DEVICE_CPU_CPU_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/product.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cpu {

struct CpuLinear : DeviceLinear {
  int64_t in = 0;
  int64_t out = 0;
  Activation activation = Activation::kNone;
  std::unique_ptr<Product> product;
};

struct CpuNorm : DeviceNorm {
  NormWeights weights;
  float eps = 0;

  NormRef ref() const {
    return {weights.gain.data(), weights.bias.data(), eps,
            static_cast<int64_t>(weights.gain.size())};
  }
};

struct CpuEmbeddings : DeviceEmbeddings {
  EmbeddingWeights tables;  // tables.norm is moved into `norm`
  CpuNorm norm;
};

struct CpuAttentionBias : DeviceAttentionBias {
  HostMatrix rows;   // [A,2n-1], each padded with kBiasPadding zeros
  int64_t zero = 0;  // column of distance 0: n-1
};

class CpuExecutor : public Executor {
 public:
  // product_scratch_bytes: the most that any product asks for.
  // RESOURCE_EXHAUSTED when memory cannot be had.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      const Kernels& kernels, const ExecutorLimits& limits,
      int64_t product_scratch_bytes);

  absl::StatusOr<Matrix> Allocate(int64_t rows, int64_t cols) override;
  int64_t row_block() const override { return kProductRows; }
  void Upload(const PackedBatch& batch) override;
  void EmbedTokens(const DeviceEmbeddings& tables, Matrix out) override;
  void SumTables(const DeviceEmbeddings& tables, Matrix out) override;
  void Linear(Matrix x, const DeviceLinear& weights, Matrix y) override;
  void Attention(Matrix qkv, int32_t num_heads, const DeviceAttentionBias* bias,
                 Matrix context) override;
  void AddLayerNorm(Matrix x, Matrix residual, const DeviceNorm& norm,
                    Matrix y) override;
  void TakeStates(Matrix x, int32_t layer,
                  absl::Span<const SequenceOutput> outputs,
                  ForwardResult* result) override;
  void Pool(Matrix x, absl::Span<const SequenceOutput> outputs,
            ForwardResult* result) override;
  absl::Status Finish() override;

 private:
  CpuExecutor(const Kernels& kernels, const ExecutorLimits& limits)
      : kernels_(kernels), limits_(limits) {}

  DType dtype() const { return kernels_.bf16 ? DType::kBF16 : DType::kF32; }
  void Embed(const CpuEmbeddings& embeddings, const NormRef& norm, Matrix out);
  // The rows of sequence b of x as floats: in place, or widened into states_.
  const float* SequenceStates(Matrix x, int64_t b);
  bool Failed() const { return !status_.ok(); }

  // Constant after Create.
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

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_CPU_EXECUTOR_H_
