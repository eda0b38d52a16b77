// The device seam: the only place where CPU and GPU differ.
//
// A Device prepares constant weights once; an Executor runs one forward pass at
// a time, op by op (ops.h). Ops record the first device error and turn into
// no-ops after it; Finish returns it. Shapes: T tokens, B sequences, H hidden,
// F feed-forward, A heads, D = H/A, E columns of the tables (H unless a product
// from E to H follows).
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
#include "engine/base/batch.h"
#include "engine/base/forward_result.h"
#include "engine/base/pauses.h"
#include "engine/base/tensor.h"
#include "engine/device/model_sizes.h"
#include "engine/device/op_costs.h"
#include "engine/device/ops.h"
#include "engine/device/weights.h"

namespace encoderd {

// `count` rows of a matrix from `first` on.
inline Matrix RowsOf(const Matrix& matrix, int64_t first, int64_t count) {
  Matrix rows = matrix;
  rows.data = static_cast<char*>(matrix.data) +
              first * matrix.cols * DTypeBytes(matrix.dtype);
  rows.rows = count;
  return rows;
}

// Constant weights on a device: what ops are given of them. Of a device that
// is several cards, On(card) has those that lie on one (Executor::card).
template <typename Weights>
class OnCards {
 public:
  virtual ~OnCards() = default;
  virtual const Weights& On(int32_t card) const {
    return static_cast<const Weights&>(*this);
  }
};
// Opaque: weights and activation as the device's products keep them.
class DeviceLinear : public OnCards<DeviceLinear> {
 public:
  bool in_fp8 = false;  // multiplies rows in e4m3
};
struct DeviceNorm : OnCards<DeviceNorm> {
  NormRef norm;
};
struct DeviceEmbeddings : OnCards<DeviceEmbeddings> {
  TablesRef tables;
  NormRef norm;
};
struct DeviceAttentionBias : OnCards<DeviceAttentionBias> {
  const float* bias = nullptr;  // and its stride: as AttentionOp has them
  int32_t bias_stride = 0;
};
struct DeviceRotation : OnCards<DeviceRotation> {
  const float* cos = nullptr;  // [P,pairs]
  const float* sin = nullptr;  // [P,pairs]
  int32_t pairs = 0;
};

// Sizes for which an Executor takes its memory, once.
struct ExecutorLimits {
  int64_t max_batch_tokens = 0;     // T
  int64_t max_batch_sequences = 0;  // B
  ModelSizes model;
  bool in_pauses = false;  // as in SessionOptions
};

class Executor {
 public:
  virtual ~Executor() = default;

  // RESOURCE_EXHAUSTED if memory is unavailable. Scratch [rows, cols] in the
  // compute dtype, taken at start and owned by the Executor.
  virtual absl::StatusOr<Matrix> Allocate(int64_t rows, int64_t cols) = 0;

  // As in Session.
  virtual int64_t scratch_bytes() const = 0;

  // Rows that a chain of row-wise ops should take at a time, so that
  // intermediate rows stay in the device's caches.
  virtual int64_t row_block() const = 0;

  // Whether it supports AttentionOp::needed_rows. If not, all rows are attended
  // to and the needed ones picked, in batches of at most a row block.
  virtual bool attends_needed_rows() const { return false; }

  // Starts a pass. `batch` must stay alive until Finish. The ids are the
  // device's; the pass is computed over as many rows as they have.
  virtual BatchRef Upload(const PackedBatch& batch) = 0;
  // The next op of the pass (ops.h).
  virtual void Run(const Op& op) = 0;
  // Waits for the pass; the results of its PoolOps are in result->values, what
  // the device found out about itself in its note. The first error of any op
  // since Upload.
  virtual absl::Status Finish(ForwardResult* result) = 0;

  // Queried before each op from now on, if the device supports pauses; must
  // outlive the device; null: never.
  virtual void SetPauses(Pauses* pauses) {}

  // The card of its device on which this runs and has its weights.
  int32_t card() const { return card_; }
  void set_card(int32_t card) { card_ = card; }

 private:
  int32_t card_ = 0;
};

using OpObserver = std::function<void(const OpTime&)>;

// Prepare from one thread; constant from then on, and then NewExecutor may be
// called from many. Outlives what it creates.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;  // "cpu (AMD EPYC ..., avx512_bf16)"
  virtual DType dtype() const = 0;       // of products and activations
  virtual bool on_gpu() const { return false; }
  // What its products multiply: the dtype's name, or "fp8" or "int8" if those
  // of weights that allow 8 bits do.
  virtual std::string products() const { return DTypeName(dtype()); }
  // How many Sessions fill the device when each has its own thread. CPU: the
  // physical cores that this process may use (affinity mask and
  // cgroup quota counted in), at least 1.
  virtual int32_t preferred_sessions() const = 0;
  // With fewer Sessions a part of the device idles: one for each card.
  virtual int32_t least_sessions() const { return 1; }
  // Tokens of a batch from which on larger ones are no faster.
  virtual int64_t default_batch_tokens() const = 0;
  // Whether passes run on their caller's thread and so can pause.
  virtual bool pauses() const { return false; }
  // For the log: why this device, and what the model that it was told to
  // expect takes.
  const std::vector<std::string>& notes() const { return notes_; }
  void AddNote(std::string note) { notes_.push_back(std::move(note)); }

  // Whether small batches may run by CUDA graphs; the default is true. Before
  // NewExecutor; no effect on a CPU.
  virtual void AllowGraphs(bool allowed) {}

  // Tells `observe` of every op of each pass from now on, on the Executor's
  // thread; slows passes down. Before NewExecutor. False: this device cannot.
  virtual bool ObserveOps(OpObserver observe) { return false; }

  // Called once before the Prepare functions, with the size of every weight
  // that they will be given. UNIMPLEMENTED: shapes that the device does not
  // support; RESOURCE_EXHAUSTED: the model and the smallest
  // Session do not fit in its memory, with the numbers.
  virtual absl::Status ExpectModel(const ModelSizes& sizes,
                                   const std::vector<WeightSize>& weights) {
    return absl::OkStatus();
  }
  // Copies what it needs: the caller may overwrite `weights` afterwards.
  virtual absl::StatusOr<std::unique_ptr<DeviceLinear>> PrepareLinear(
      const LinearWeights& weights, Activation activation) = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceNorm>> PrepareNorm(
      NormWeights weights, float eps) = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceEmbeddings>> PrepareEmbeddings(
      EmbeddingWeights weights, float eps) = 0;
  // biases [A,2n-1] as PositionScheme::Biases gives them, for sequences of up
  // to n tokens.
  virtual absl::StatusOr<std::unique_ptr<DeviceAttentionBias>>
  PrepareAttentionBias(HostMatrix biases) = 0;
  // cos and sin [P,pairs], rows by position id. INVALID_ARGUMENT: they differ
  // in shape, or have more pairs than half of a head of the expected model.
  virtual absl::StatusOr<std::unique_ptr<DeviceRotation>> PrepareRotation(
      HostMatrix cos, HostMatrix sin) = 0;
  virtual absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const ExecutorLimits& limits) const = 0;

 private:
  std::vector<std::string> notes_;
};

// device: the words of engine/device/device_words.h, where "cuda" is the first
// card and "cuda:all" all there are; several cards must be of one kind. "auto"
// is the first card if this build has CUDA and a driver, a card and cuBLASLt
// are available, else the CPU; notes() says why. dtype: "auto", "fp32", "bf16",
// "fp16". "auto" is fp32 on a CPU and bf16 on a card. An unavailable device or
// dtype is rejected, naming the available ones. tuning_folder: where a card
// stores which algorithms were fastest; empty: nothing is stored. products:
// "dtype"; or 8 bits: "fp8" on a card, "int8" on a CPU that supports them.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    const std::string& device, const std::string& dtype,
    const std::string& tuning_folder = "",
    const std::string& products = "dtype");

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_DEVICE_H_
