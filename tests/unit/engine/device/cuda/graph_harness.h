// Models on an emulated card whose small passes run by CUDA graphs.
#ifndef ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_GRAPH_HARNESS_H_
#define ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_GRAPH_HARNESS_H_

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/device/several_devices.h"
#include "engine/encoder.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {

constexpr int kIllegalAddress = 700, kLaunchOutOfResources = 701;
constexpr int kStreamCaptureUnsupported = 900;

// Products that do in a capture what some libraries do.
class OddProducts : public EmulatedProducts {
 public:
  using Run = std::function<absl::Status(const Product& product, const void* x,
                                         int64_t rows, void* y,
                                         const OpStream& stream)>;
  explicit OddProducts(Run run, int64_t workspace_bytes = 0)
      : run_(std::move(run)), workspace_bytes_(workspace_bytes) {}
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args) override {
    return std::unique_ptr<Product>(
        new Odd(EmulatedProducts::Create(args).value(), run_));
  }

 private:
  struct Odd : Product {
    Odd(std::unique_ptr<Product> product, OddProducts::Run run)
        : product(std::move(product)), run(std::move(run)) {}
    absl::Status Run(const void* x, int64_t rows, void* y,
                     const OpStream& stream) const override {
      return run(*product, x, rows, y, stream);
    }
    const std::unique_ptr<Product> product;
    const OddProducts::Run run;
  };
  const Run run_;
  const int64_t workspace_bytes_;
};

class CudaGraphTest : public ::testing::Test {
 protected:
  CudaGraphTest() {
    shape_.hidden = 32;
    shape_.heads = 2;
    shape_.inner = 40;
    shape_.positions = 70;
    runtime_->card.compute_major = 8;  // fast_passes_test has what 9 adds
  }

  std::unique_ptr<Device> Card(bool graphs, DType dtype = DType::kF32,
                               int32_t ordinal = 0) const {
    return NewCudaDevice(runtime_, std::make_unique<EmulatedProducts>(),
                         ordinal, DTypeName(dtype), "dtype", graphs)
        .value();
  }
  std::unique_ptr<Device> TwoCards() const {
    runtime_->devices = 2;
    std::vector<std::unique_ptr<Device>> cards;
    cards.push_back(Card(true));
    cards.push_back(Card(true, DType::kF32, 1));
    return JoinDevices(std::move(cards));
  }
  std::unique_ptr<const Encoder> Build(std::unique_ptr<Device> device) const {
    return Encoder::Build(std::move(device), RandomConfig(shape_),
                          RandomCheckpoint(shape_, 1).get())
        .value();
  }
  // A model in fp32 whose products run by `run`.
  std::unique_ptr<const Encoder> BuildOdd(OddProducts::Run run,
                                          int64_t workspace_bytes = 0) const {
    auto products =
        std::make_unique<OddProducts>(std::move(run), workspace_bytes);
    return Build(
        NewCudaDevice(runtime_, std::move(products), 0, "fp32").value());
  }
  void Append(int32_t length, PackedBatch* batch) {
    batch->Append(RandomSequence(length, RandomLimits(shape_), &random_),
                  RandomLimits(shape_));
  }
  PackedBatch Batch(const std::vector<int32_t>& lengths) {
    PackedBatch batch;
    for (const int32_t length : lengths) Append(length, &batch);
    return batch;
  }
  static ForwardResult RunPass(Session* session, const PackedBatch& batch,
                               std::vector<SequenceOutput> outputs = {}) {
    outputs.resize(batch.num_sequences());
    ForwardResult result;
    const absl::Status status = session->Run(batch, outputs, &result);
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }
  absl::Status StatusOf(Session* session, const PackedBatch& batch) const {
    ForwardResult result;
    return session->Run(
        batch, std::vector<SequenceOutput>(batch.num_sequences()), &result);
  }

  RandomShape shape_;
  std::mt19937 random_{5};
  const std::shared_ptr<EmulatedRuntime> runtime_ =
      std::make_shared<EmulatedRuntime>();
};

}  // namespace cuda
}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_DEVICE_CUDA_GRAPH_HARNESS_H_
