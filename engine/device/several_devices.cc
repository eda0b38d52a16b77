#include "engine/device/several_devices.h"

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace encoderd {
namespace {

// Constant weights, once on each device.
template <typename Weights>
struct OnEach : Weights {
  const Weights& On(int32_t card) const override { return *parts[card]; }
  std::vector<std::unique_ptr<Weights>> parts;
};

class SeveralDevices : public Device {
 public:
  explicit SeveralDevices(std::vector<std::unique_ptr<Device>> devices)
      : devices_(std::move(devices)), told_(devices_.size()) {
    TakeNotes();
  }

  std::string name() const override {
    return absl::StrJoin(devices_, " + ",
                         [](std::string* out, const auto& device) {
                           out->append(device->name());
                         });
  }
  DType dtype() const override { return devices_.front()->dtype(); }
  std::string products() const override { return devices_.front()->products(); }
  bool on_gpu() const override { return devices_.front()->on_gpu(); }
  int32_t preferred_sessions() const override {
    int32_t sessions = 0;
    for (const auto& device : devices_)
      sessions += device->preferred_sessions();
    return sessions;
  }
  int32_t least_sessions() const override {
    return static_cast<int32_t>(devices_.size());
  }
  int64_t default_batch_tokens() const override {
    return devices_.front()->default_batch_tokens();
  }

  void AllowGraphs(bool allowed) override {
    for (const auto& device : devices_) device->AllowGraphs(allowed);
  }
  bool ObserveOps(OpObserver observe) override {
    bool all = true;
    for (const auto& device : devices_) all &= device->ObserveOps(observe);
    return all;
  }
  absl::Status ExpectModel(const ModelSizes& sizes,
                           const std::vector<WeightSize>& weights) override {
    for (const auto& device : devices_) {
      const absl::Status status = device->ExpectModel(sizes, weights);
      TakeNotes();
      if (!status.ok()) return Of(*device, status);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<DeviceLinear>> PrepareLinear(
      const LinearWeights& weights, Activation activation) override {
    return Prepare<DeviceLinear>([&](Device* device) {
      return device->PrepareLinear(weights, activation);
    });
  }
  absl::StatusOr<std::unique_ptr<DeviceNorm>> PrepareNorm(NormWeights weights,
                                                          float eps) override {
    return Prepare<DeviceNorm>(
        [&](Device* device) { return device->PrepareNorm(weights, eps); });
  }
  absl::StatusOr<std::unique_ptr<DeviceEmbeddings>> PrepareEmbeddings(
      EmbeddingWeights weights, float eps) override {
    return Prepare<DeviceEmbeddings>([&](Device* device) {
      return device->PrepareEmbeddings(weights, eps);
    });
  }
  absl::StatusOr<std::unique_ptr<DeviceAttentionBias>> PrepareAttentionBias(
      HostMatrix biases) override {
    return Prepare<DeviceAttentionBias>(
        [&](Device* device) { return device->PrepareAttentionBias(biases); });
  }
  absl::StatusOr<std::unique_ptr<DeviceRotation>> PrepareRotation(
      HostMatrix cos, HostMatrix sin) override {
    return Prepare<DeviceRotation>(
        [&](Device* device) { return device->PrepareRotation(cos, sin); });
  }

  absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const ExecutorLimits& limits) const override {
    const size_t index = next_++ % devices_.size();
    absl::StatusOr<std::unique_ptr<Executor>> executor =
        devices_[index]->NewExecutor(limits);
    if (!executor.ok()) return Of(*devices_[index], executor.status());
    (*executor)->set_card(static_cast<int32_t>(index));
    return executor;
  }

 private:
  // "cuda:1" of "cuda:1 (NVIDIA H200, ...)".
  static std::string ShortName(const Device& device) {
    const std::string name = device.name();
    return name.substr(0, name.find(' '));
  }
  static absl::Status Of(const Device& device, const absl::Status& status) {
    return absl::Status(
        status.code(), absl::StrCat(ShortName(device), ": ", status.message()));
  }

  template <typename Weights, typename PrepareOne>
  absl::StatusOr<std::unique_ptr<Weights>> Prepare(const PrepareOne& prepare) {
    auto all = std::make_unique<OnEach<Weights>>();
    for (const auto& device : devices_) {
      absl::StatusOr<std::unique_ptr<Weights>> one = prepare(device.get());
      TakeNotes();
      if (!one.ok()) return Of(*device, one.status());
      all->parts.push_back(*std::move(one));
    }
    return std::unique_ptr<Weights>(std::move(all));
  }

  // What the devices have noted since the last call.
  void TakeNotes() {
    for (size_t i = 0; i < devices_.size(); ++i) {
      const std::vector<std::string>& notes = devices_[i]->notes();
      for (; told_[i] < notes.size(); ++told_[i]) {
        AddNote(absl::StrCat(ShortName(*devices_[i]), ": ", notes[told_[i]]));
      }
    }
  }

  const std::vector<std::unique_ptr<Device>> devices_;
  std::vector<size_t> told_;  // notes of each that are among ours
  mutable std::atomic<size_t> next_{0};
};

}  // namespace

std::unique_ptr<Device> JoinDevices(
    std::vector<std::unique_ptr<Device>> devices) {
  return std::make_unique<SeveralDevices>(std::move(devices));
}

}  // namespace encoderd
