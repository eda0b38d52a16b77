// An Encoder over weights that a test supplies: other rows, errors.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "engine/device/device.h"
#include "engine/encoder.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/test_devices.h"

namespace encoderd {
namespace {

// The weights with another position table.
class OtherRows : public WeightSource {
 public:
  OtherRows(std::unique_ptr<WeightSource> source, HostMatrix rows)
      : source_(std::move(source)), rows_(std::move(rows)) {}
  absl::StatusOr<OuterWeights> ReadOuter() override {
    auto weights = source_->ReadOuter();
    if (weights.ok()) weights->embeddings.position = rows_;
    return weights;
  }
  absl::StatusOr<LayerWeights> ReadLayer(int32_t layer) override {
    return source_->ReadLayer(layer);
  }

 private:
  const std::unique_ptr<WeightSource> source_;
  const HostMatrix rows_;
};

class EncoderSourceTest : public ::testing::TestWithParam<TestDevice> {};

// What a scheme that works in attention alone asks of the embedding block.
TEST_P(EncoderSourceTest, NoPositionRowsAreRowsOfZeros) {
  const RandomShape shape;
  const IdLimits limits = RandomLimits(shape);
  const HostMatrix zeros = {shape.positions, shape.hidden,
                            std::vector<float>(shape.positions * shape.hidden)};
  std::mt19937 random(3);
  PackedBatch batch;
  batch.Append(RandomSequence(40, limits, &random), limits);
  const SequenceOutput states = {.kind = SequenceOutput::Kind::kStates,
                                 .layer = 2};
  std::vector<std::vector<float>> values;
  for (const HostMatrix& rows : {HostMatrix{0, shape.hidden, {}}, zeros}) {
    OtherRows source(RandomCheckpoint(shape, 1), rows);
    const auto encoder =
        Encoder::Build(GetParam().Open(), RandomConfig(shape), &source).value();
    const auto session = encoder->NewSession({}).value();
    ForwardResult result;
    ASSERT_TRUE(session->Run(batch, {states}, &result).ok());
    values.push_back(result.values);
  }
  EXPECT_EQ(values[0], values[1]);
}

INSTANTIATE_TEST_SUITE_P(Devices, EncoderSourceTest,
                         ::testing::ValuesIn(TestDevices()),
                         [](const ::testing::TestParamInfo<TestDevice>& info) {
                           return TestDeviceName(info.param);
                         });

class FailingSource : public WeightSource {
 public:
  explicit FailingSource(std::unique_ptr<WeightSource> source)
      : source_(std::move(source)) {}
  absl::StatusOr<OuterWeights> ReadOuter() override {
    return source_->ReadOuter();
  }
  absl::StatusOr<LayerWeights> ReadLayer(int32_t layer) override {
    if (layer == 1) return absl::DataLossError("layer 1 ends early");
    return source_->ReadLayer(layer);
  }

 private:
  const std::unique_ptr<WeightSource> source_;
};

TEST(EncoderBuildTest, PassesTheCheckpointsErrorOn) {
  const RandomShape shape;
  FailingSource source(RandomCheckpoint(shape, 1));
  const auto encoder = Encoder::Build(OpenDevice("cpu", "fp32").value(),
                                      RandomConfig(shape), &source);
  EXPECT_EQ(encoder.status(), absl::DataLossError("layer 1 ends early"));
}

}  // namespace
}  // namespace encoderd
