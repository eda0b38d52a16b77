// A Device that does what another does. Tests and benchmarks derive from it and
// override what they watch.
#ifndef ENCODERD_TESTS_SUPPORT_FORWARDING_DEVICE_H_
#define ENCODERD_TESTS_SUPPORT_FORWARDING_DEVICE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/device.h"

namespace encoderd {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> device)
      : device_(std::move(device)) {}

  std::string name() const override { return device_->name(); }
  DType dtype() const override { return device_->dtype(); }
  std::string products() const override { return device_->products(); }
  int32_t preferred_sessions() const override {
    return device_->preferred_sessions();
  }
  int64_t default_batch_tokens() const override {
    return device_->default_batch_tokens();
  }
  absl::Status ExpectModel(const ModelSizes& sizes,
                           const std::vector<WeightSize>& weights) override {
    return device_->ExpectModel(sizes, weights);
  }
  absl::StatusOr<std::unique_ptr<DeviceLinear>> PrepareLinear(
      const LinearWeights& weights, Activation activation) override {
    return device_->PrepareLinear(weights, activation);
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
  absl::StatusOr<std::unique_ptr<DeviceRotation>> PrepareRotation(
      HostMatrix cos, HostMatrix sin) override {
    return device_->PrepareRotation(std::move(cos), std::move(sin));
  }
  absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const ExecutorLimits& limits) const override {
    return device_->NewExecutor(limits);
  }

 private:
  const std::unique_ptr<Device> device_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_FORWARDING_DEVICE_H_
