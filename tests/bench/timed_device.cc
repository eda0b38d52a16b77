#include "tests/bench/timed_device.h"

#include <chrono>
#include <utility>
#include <vector>

#include "tests/support/forwarding_device.h"

namespace encoderd {
namespace {

class TimedExecutor : public Executor {
 public:
  TimedExecutor(std::unique_ptr<Executor> executor, OpObserver observe)
      : executor_(std::move(executor)), observe_(std::move(observe)) {
    set_card(executor_->card());
  }

  absl::StatusOr<Matrix> Allocate(int64_t rows, int64_t cols) override {
    return executor_->Allocate(rows, cols);
  }
  int64_t row_block() const override { return executor_->row_block(); }
  bool attends_needed_rows() const override {
    return executor_->attends_needed_rows();
  }
  BatchRef Upload(const PackedBatch& batch) override {
    lengths_.clear();
    for (int64_t b = 0; b < batch.num_sequences(); ++b)
      lengths_.push_back(batch.cu_seqlens[b + 1] - batch.cu_seqlens[b]);
    return executor_->Upload(batch);
  }
  int64_t scratch_bytes() const override { return executor_->scratch_bytes(); }
  void Run(const Op& op) override {
    const auto start = std::chrono::steady_clock::now();
    executor_->Run(op);
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    OpTime time = CostOf(op, lengths_);
    time.seconds = took.count();
    observe_(time);
  }
  absl::Status Finish(ForwardResult* result) override {
    return executor_->Finish(result);
  }

 private:
  const std::unique_ptr<Executor> executor_;
  const OpObserver observe_;
  std::vector<int32_t> lengths_;
};

class TimedDevice : public ForwardingDevice {
 public:
  TimedDevice(std::unique_ptr<Device> device, OpObserver observe)
      : ForwardingDevice(std::move(device)), observe_(std::move(observe)) {}

  int32_t preferred_sessions() const override { return 1; }
  absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const ExecutorLimits& limits) const override {
    auto executor = ForwardingDevice::NewExecutor(limits);
    if (!executor.ok()) return executor.status();
    return std::unique_ptr<Executor>(
        std::make_unique<TimedExecutor>(*std::move(executor), observe_));
  }

 private:
  const OpObserver observe_;
};

}  // namespace

std::unique_ptr<Device> TimeOps(std::unique_ptr<Device> device,
                                OpObserver observe) {
  return std::make_unique<TimedDevice>(std::move(device), std::move(observe));
}

}  // namespace encoderd
