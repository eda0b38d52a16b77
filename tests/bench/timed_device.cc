#include "tests/bench/timed_device.h"

#include <chrono>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace encoderd {
namespace {

class Timer {
 public:
  Timer(const OpObserver& observe, std::string op, double flops)
      : observe_(observe),
        op_(std::move(op)),
        flops_(flops),
        start_(std::chrono::steady_clock::now()) {}
  ~Timer() {
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start_;
    observe_({op_, took.count(), flops_, /*bytes=*/0});
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  const OpObserver& observe_;
  const std::string op_;
  const double flops_;
  const std::chrono::steady_clock::time_point start_;
};

class TimedExecutor : public Executor {
 public:
  TimedExecutor(std::unique_ptr<Executor> executor, OpObserver observe)
      : executor_(std::move(executor)), observe_(std::move(observe)) {}

  absl::StatusOr<Matrix> Allocate(int64_t rows, int64_t cols) override {
    return executor_->Allocate(rows, cols);
  }
  int64_t row_block() const override { return executor_->row_block(); }
  void Upload(const PackedBatch& batch) override {
    batch_ = &batch;
    executor_->Upload(batch);
  }
  void EmbedTokens(const DeviceEmbeddings& tables, Matrix out) override {
    const Timer timer(observe_, "embed", 0);
    executor_->EmbedTokens(tables, out);
  }
  void SumTables(const DeviceEmbeddings& tables, Matrix out) override {
    executor_->SumTables(tables, out);
  }
  void Linear(Matrix x, const DeviceLinear& weights, Matrix y) override {
    const Timer timer(observe_, absl::StrCat("linear ", x.cols, " -> ", y.cols),
                      2.0 * x.rows * x.cols * y.cols);
    executor_->Linear(x, weights, y);
  }
  void Attention(Matrix qkv, int32_t num_heads, const DeviceAttentionBias* bias,
                 Matrix context) override {
    double pairs = 0;
    for (int64_t b = 0; b < batch_->num_sequences(); ++b) {
      const double n = batch_->cu_seqlens[b + 1] - batch_->cu_seqlens[b];
      pairs += n * n;
    }
    const Timer timer(observe_, "attention", 4.0 * pairs * context.cols);
    executor_->Attention(qkv, num_heads, bias, context);
  }
  void AddLayerNorm(Matrix x, Matrix residual, const DeviceNorm& norm,
                    Matrix y) override {
    const Timer timer(observe_, "add_layer_norm", 0);
    executor_->AddLayerNorm(x, residual, norm, y);
  }
  void TakeStates(Matrix x, int32_t layer,
                  absl::Span<const SequenceOutput> outputs,
                  ForwardResult* result) override {
    executor_->TakeStates(x, layer, outputs, result);
  }
  void Pool(Matrix x, absl::Span<const SequenceOutput> outputs,
            ForwardResult* result) override {
    const Timer timer(observe_, "pool", 0);
    executor_->Pool(x, outputs, result);
  }
  absl::Status Finish() override { return executor_->Finish(); }

 private:
  const std::unique_ptr<Executor> executor_;
  const OpObserver observe_;
  const PackedBatch* batch_ = nullptr;
};

class TimedDevice : public Device {
 public:
  TimedDevice(std::unique_ptr<Device> device, OpObserver observe)
      : device_(std::move(device)), observe_(std::move(observe)) {}

  std::string name() const override { return device_->name(); }
  DType dtype() const override { return device_->dtype(); }
  std::string products() const override { return device_->products(); }
  int32_t preferred_sessions() const override { return 1; }
  int64_t default_batch_tokens() const override {
    return device_->default_batch_tokens();
  }
  absl::StatusOr<std::unique_ptr<DeviceLinear>> PrepareLinear(
      LinearWeights weights, Activation activation) override {
    return device_->PrepareLinear(std::move(weights), activation);
  }
  absl::StatusOr<std::unique_ptr<DeviceNorm>> PrepareNorm(NormWeights weights,
                                                          float eps) override {
    return device_->PrepareNorm(std::move(weights), eps);
  }
  absl::StatusOr<std::unique_ptr<DeviceEmbeddings>> PrepareEmbeddings(
      EmbeddingWeights weights, float eps) override {
    return device_->PrepareEmbeddings(std::move(weights), eps);
  }
  absl::StatusOr<std::unique_ptr<DeviceAttentionBias>> PrepareAttentionBias(
      HostMatrix biases) override {
    return device_->PrepareAttentionBias(std::move(biases));
  }
  absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const ExecutorLimits& limits) const override {
    auto executor = device_->NewExecutor(limits);
    if (!executor.ok()) return executor.status();
    return std::unique_ptr<Executor>(
        absl::make_unique<TimedExecutor>(*std::move(executor), observe_));
  }

 private:
  const std::unique_ptr<Device> device_;
  const OpObserver observe_;
};

}  // namespace

std::unique_ptr<Device> TimeOps(std::unique_ptr<Device> device,
                                OpObserver observe) {
  return absl::make_unique<TimedDevice>(std::move(device), std::move(observe));
}

}  // namespace encoderd
