// The device seam: the only place where CPU and GPU differ.
//
// A Device prepares constant weights once; an Executor runs one forward pass at
// a time. Matrices are rank two; what `data` points to is the device's
// business. Ops record the first device error and turn into no-ops after it;
// Finish returns it. Shapes: T tokens, B sequences, H hidden, F feed-forward,
// A heads, D = H/A, E columns of the tables (H unless a linear from E to H
// follows).
#ifndef ENCODERD_ENGINE_DEVICE_DEVICE_H_
#define ENCODERD_ENGINE_DEVICE_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/batch.h"
#include "engine/base/forward_result.h"
#include "engine/base/tensor.h"
#include "engine/device/weights.h"

namespace encoderd {

// View of a device matrix [rows, cols], row-major and dense.
struct Matrix {
  void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;

  // View of `count` rows from `first` on.
  Matrix Rows(int64_t first, int64_t count) const {
    char* from = static_cast<char*>(data) + first * cols * DTypeBytes(dtype);
    return {from, count, cols, dtype};
  }
};

// Constant weights on a device; opaque to the encoder.
class DeviceLinear {
 public:
  virtual ~DeviceLinear() = default;
};
class DeviceNorm {
 public:
  virtual ~DeviceNorm() = default;
};
class DeviceEmbeddings {
 public:
  virtual ~DeviceEmbeddings() = default;
};
class DeviceAttentionBias {
 public:
  virtual ~DeviceAttentionBias() = default;
};

// Sizes for which an Executor takes its memory, once.
struct ExecutorLimits {
  int64_t max_batch_tokens = 0;     // T
  int64_t max_batch_sequences = 0;  // B
  int32_t max_seqlen = 0;
  int32_t hidden_size = 0;
  int32_t embedding_size = 0;  // E of a factored embedding; 0: it is not
  int32_t num_attention_heads = 0;
  int32_t intermediate_size = 0;
};

// What a Device is told before any weight is prepared.
struct ModelSizes {
  int32_t num_layers = 0;  // with weights of their own
  int32_t hidden_size = 0;
  int32_t embedding_size = 0;  // E of a factored embedding; 0: it is not
  int32_t num_attention_heads = 0;
  int32_t intermediate_size = 0;
  int32_t token_rows = 0;
  int32_t position_rows = 0;
  int32_t segment_rows = 0;  // 0: none
  int32_t max_len = 0;
  bool attention_bias = false;
};

class Executor {
 public:
  virtual ~Executor() = default;

  // RESOURCE_EXHAUSTED when memory cannot be had. Scratch [rows, cols] in the
  // compute dtype, taken at start and owned by the Executor.
  virtual absl::StatusOr<Matrix> Allocate(int64_t rows, int64_t cols) = 0;

  // Rows that a chain of row-wise ops (Linear, AddLayerNorm) should take at a
  // time, so that what lies between them stays in the device's caches.
  virtual int64_t row_block() const = 0;

  // Starts a pass. `batch` must stay alive until Finish.
  virtual void Upload(const PackedBatch& batch) = 0;
  // out [T,E] = LayerNorm(token row + position row + segment row)
  virtual void EmbedTokens(const DeviceEmbeddings& tables, Matrix out) = 0;
  // out [T,E] = token row + position row + segment row, without the LayerNorm
  virtual void SumTables(const DeviceEmbeddings& tables, Matrix out) = 0;
  // y [rows,out] = activation(x [rows,in] W^T + b); y must not alias x.
  virtual void Linear(Matrix x, const DeviceLinear& weights, Matrix y) = 0;
  // context [T,H] = softmax(Q K^T / sqrt(D) + bias) V for each sequence and
  // head; qkv [T,3H] as Q|K|V; bias null: none.
  virtual void Attention(Matrix qkv, int32_t num_heads,
                         const DeviceAttentionBias* bias, Matrix context) = 0;
  // y [rows,H] = LayerNorm(x + residual); y may be x or residual. x may be
  // overwritten.
  virtual void AddLayerNorm(Matrix x, Matrix residual, const DeviceNorm& norm,
                            Matrix y) = 0;
  // Gives every sequence of `outputs` that wants the states of `layer` its rows
  // of x [T,H].
  virtual void TakeStates(Matrix x, int32_t layer,
                          absl::Span<const SequenceOutput> outputs,
                          ForwardResult* result) = 0;
  // Pools (and normalises) x [T,H] for every sequence that wants a pooled
  // vector.
  virtual void Pool(Matrix x, absl::Span<const SequenceOutput> outputs,
                    ForwardResult* result) = 0;
  // Waits for the pass; results are on the host. The first error of any op
  // since Upload.
  virtual absl::Status Finish() = 0;
};

// What one op of a pass took on a device, for benchmarks: seconds, and what it
// computes and moves at least, to quote shares of the device's peaks.
struct OpTime {
  std::string op;  // "product 384 -> 1536"
  double seconds = 0;
  double flops = 0;
  double bytes = 0;
};
using OpObserver = std::function<void(const OpTime&)>;

// Prepare from one thread; constant from then on, and then NewExecutor may be
// called from many. Outlives what it made.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name()
      const = 0;                    // "cpu (AMD EPYC ..., avx512_core_bf16)"
  virtual DType dtype() const = 0;  // of products and activations
  // What its products multiply: the dtype's name, or "fp8" where those of
  // weights that bear 8 bits do.
  virtual std::string products() const { return DTypeName(dtype()); }
  // How many Sessions fill the device when each runs on a thread of its own.
  // CPU: the physical cores that this process may use (affinity mask and
  // cgroup quota counted in), at least 1.
  virtual int32_t preferred_sessions() const = 0;
  // With fewer Sessions a part of the device idles: one for each card.
  virtual int32_t least_sessions() const { return 1; }
  // Tokens of a batch from which on larger ones are no faster.
  virtual int64_t default_batch_tokens() const = 0;
  // For the log: why this device, and what the model that it was told to
  // expect takes.
  const std::vector<std::string>& notes() const { return notes_; }
  void AddNote(std::string note) { notes_.push_back(std::move(note)); }

  // Whether small batches may run by CUDA graphs: they may unless this says
  // otherwise. Before NewExecutor; nothing to a CPU.
  virtual void AllowGraphs(bool allowed) {}

  // Tells `observe` of every op of each pass from now on, on the Executor's
  // thread; slows passes down. Before NewExecutor. False: this device cannot.
  virtual bool ObserveOps(OpObserver observe) { return false; }

  // Called once before the Prepare functions. UNIMPLEMENTED: shapes that the
  // device does not compute; RESOURCE_EXHAUSTED: the model and one Session do
  // not fit in its memory, with the numbers.
  virtual absl::Status ExpectModel(const ModelSizes& sizes) {
    return absl::OkStatus();
  }
  virtual absl::StatusOr<std::unique_ptr<DeviceLinear>> PrepareLinear(
      LinearWeights weights, Activation activation) = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceNorm>> PrepareNorm(
      NormWeights weights, float eps) = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceEmbeddings>> PrepareEmbeddings(
      EmbeddingWeights weights, float eps) = 0;
  // biases [A,2n-1] as PositionScheme::Biases gives them, for sequences of up
  // to n tokens. UNIMPLEMENTED: this device adds none.
  virtual absl::StatusOr<std::unique_ptr<DeviceAttentionBias>>
  PrepareAttentionBias(HostMatrix biases) {
    return absl::UnimplementedError("a bias in attention is not computed here");
  }
  virtual absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const ExecutorLimits& limits) const = 0;

 private:
  std::vector<std::string> notes_;
};

// device: the words of engine/device/device_words.h, where "cuda" is the first
// card and "cuda:all" all there are; several cards must be of one kind. "auto"
// is the first card where this build has CUDA, a driver, a card and cuBLASLt
// are there, and else the CPU; notes() says why. dtype: "auto", "fp32", "bf16",
// "fp16". "auto" is fp32 on a CPU and bf16 on a card. A device or dtype that is
// not there is refused, naming what is. tuning_folder: where a card keeps which
// algorithms were fastest; empty: nothing is kept. products: "dtype", or "fp8":
// 8 bits, on a card that has them, never on a CPU.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    const std::string& device, const std::string& dtype,
    const std::string& tuning_folder = "",
    const std::string& products = "dtype");

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_DEVICE_H_
