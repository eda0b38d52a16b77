// An Encoder over weights that a test supplies: other rows, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/device.h"
#include "engine/encoder.h"
#include "engine/encoder_session.h"
#include "engine/io/half_floats.h"
#include "tests/support/forwarding_device.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/test_devices.h"

namespace encoderd {
namespace {

class ForwardingSource : public WeightSource {
 public:
  explicit ForwardingSource(std::unique_ptr<WeightSource> source)
      : source_(std::move(source)) {}
  absl::StatusOr<OuterWeights> ReadOuter() override {
    return source_->ReadOuter();
  }
  absl::Status ReadLayer(int32_t layer, LayerWeights* weights) override {
    return source_->ReadLayer(layer, weights);
  }

 private:
  const std::unique_ptr<WeightSource> source_;
};

// The weights with another position table.
class OtherRows : public ForwardingSource {
 public:
  OtherRows(std::unique_ptr<WeightSource> source, HostMatrix rows)
      : ForwardingSource(std::move(source)), rows_(std::move(rows)) {}
  absl::StatusOr<OuterWeights> ReadOuter() override {
    auto weights = ForwardingSource::ReadOuter();
    if (weights.ok()) weights->embeddings.position = rows_;
    return weights;
  }

 private:
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

// The tables in 16 bits, as the source's rounded to them.
class Halves : public ForwardingSource {
 public:
  Halves(std::unique_ptr<WeightSource> source, DType position, bool widened)
      : ForwardingSource(std::move(source)),
        position_(position),
        widened_(widened) {}
  absl::StatusOr<OuterWeights> ReadOuter() override {
    auto weights = ForwardingSource::ReadOuter();
    if (!weights.ok()) return weights;
    EmbeddingWeights& tables = weights->embeddings;
    tables.token = Narrow(tables.token, DType::kF16);
    tables.position = Narrow(tables.position, position_);
    tables.segment = Narrow(tables.segment, DType::kF16);
    return weights;
  }

 private:
  HostTable Narrow(const HostTable& table, DType dtype) const {
    if (dtype == DType::kF32) return table;
    HostTable narrow(table.rows, table.cols, dtype);
    for (size_t i = 0; i < table.floats.size(); ++i) {
      narrow.halves[i] = dtype == DType::kF16 ? NarrowToHalf(table.floats[i])
                                              : NarrowToBf16(table.floats[i]);
    }
    if (widened_) return narrow.Widened();
    return narrow;
  }

  const DType position_;
  const bool widened_;
};

TEST_P(EncoderSourceTest, TablesOf16BitsGiveTheBitsOfTheirFloats) {
  const RandomShape shape;
  const IdLimits limits = RandomLimits(shape);
  std::mt19937 random(4);
  PackedBatch batch;
  for (const int32_t length : {40, 3})
    batch.Append(RandomSequence(length, limits, &random), limits);
  const SequenceOutput output;
  for (const DType position : {DType::kF16, DType::kBF16, DType::kF32}) {
    std::vector<std::vector<float>> values;
    for (const bool widened : {false, true}) {
      Halves source(RandomCheckpoint(shape, 1), position, widened);
      const auto encoder =
          Encoder::Build(GetParam().Open(), RandomConfig(shape), &source)
              .value();
      const auto session = encoder->NewSession({}).value();
      ForwardResult result;
      ASSERT_TRUE(session->Run(batch, {output, output}, &result).ok());
      values.push_back(result.values);
    }
    EXPECT_EQ(values[0], values[1]) << DTypeName(position);
  }
}

// A layer adds values whose squares overflow; layer -1: the token table does.
class Overflowing : public ForwardingSource {
 public:
  Overflowing(std::unique_ptr<WeightSource> source, int32_t layer)
      : ForwardingSource(std::move(source)), layer_(layer) {}
  absl::StatusOr<OuterWeights> ReadOuter() override {
    auto weights = ForwardingSource::ReadOuter();
    if (weights.ok() && layer_ < 0) Enlarge(&weights->embeddings.token.floats);
    return weights;
  }
  absl::Status ReadLayer(int32_t layer, LayerWeights* weights) override {
    const absl::Status status = ForwardingSource::ReadLayer(layer, weights);
    if (layer == layer_) Enlarge(&weights->feed_forward_out.weight.data);
    return status;
  }

 private:
  static void Enlarge(std::vector<float>* values) {
    for (float& value : *values) value *= 1e25f;
  }

  const int32_t layer_;
};

// Else a broken model would have one vector for all texts.
TEST_P(EncoderSourceTest, NoNormHidesAnOverflow) {
  RandomShape pre_norm;
  pre_norm.pre_norm = pre_norm.gated = true;
  for (const RandomShape& shape : {RandomShape(), pre_norm}) {
    const IdLimits limits = RandomLimits(shape);
    std::mt19937 random(5);
    PackedBatch batch;
    batch.Append(RandomSequence(20, limits, &random), limits);
    for (int32_t layer = -1; layer < shape.layers; ++layer) {
      Overflowing source(RandomCheckpoint(shape, 1), layer);
      const auto encoder =
          Encoder::Build(GetParam().Open(), RandomConfig(shape), &source)
              .value();
      const auto session = encoder->NewSession({}).value();
      ForwardResult result;
      ASSERT_TRUE(session->Run(batch, {SequenceOutput()}, &result).ok());
      ASSERT_FALSE(result.values.empty());
      for (const float value : result.values)
        ASSERT_TRUE(std::isnan(value)) << "layer " << layer;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, EncoderSourceTest,
                         ::testing::ValuesIn(TestDevices()),
                         [](const ::testing::TestParamInfo<TestDevice>& info) {
                           return TestDeviceName(info.param);
                         });

class FailingSource : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  absl::Status ReadLayer(int32_t layer, LayerWeights* weights) override {
    if (layer == 1) return absl::DataLossError("layer 1 ends early");
    return ForwardingSource::ReadLayer(layer, weights);
  }
};

TEST(EncoderBuildTest, PassesTheCheckpointsErrorOn) {
  const RandomShape shape;
  FailingSource source(RandomCheckpoint(shape, 1));
  const auto encoder = Encoder::Build(OpenDevice("cpu", "fp32").value(),
                                      RandomConfig(shape), &source);
  EXPECT_EQ(encoder.status(), absl::DataLossError("layer 1 ends early"));
}

// Notes whether a layer that is asked for finds memory of the one before.
class NotingSource : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  absl::Status ReadLayer(int32_t layer, LayerWeights* weights) override {
    for (const LinearWeights* linear :
         {&weights->qkv, &weights->attention_output, &weights->feed_forward_in,
          &weights->feed_forward_out}) {
      if (layer > 0) had_memory &= linear->weight.data.capacity() > 0;
    }
    ++layers;
    return ForwardingSource::ReadLayer(layer, weights);
  }

  bool had_memory = true;
  int32_t layers = 0;
};

// Fresh pages took a third of the time in which weights are read.
TEST(EncoderBuildTest, TheMatricesOfALayerLeaveTheirMemoryToTheNext) {
  RandomShape shape;
  shape.layers = 3;
  NotingSource source(RandomCheckpoint(shape, 1));
  const auto encoder = Encoder::Build(OpenDevice("cpu", "fp32").value(),
                                      RandomConfig(shape), &source);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  EXPECT_EQ(source.layers, 3);
  EXPECT_TRUE(source.had_memory);
}

// The second layer lacks the norm after its attention.
class WithoutNorm : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  absl::Status ReadLayer(int32_t layer, LayerWeights* weights) override {
    const absl::Status status = ForwardingSource::ReadLayer(layer, weights);
    if (layer == 1) weights->attention_norm = {};
    return status;
  }
};

TEST(EncoderBuildTest, NamesALayerThatLacksANorm) {
  const RandomShape shape;
  WithoutNorm source(RandomCheckpoint(shape, 1));
  const auto encoder = Encoder::Build(OpenDevice("cpu", "fp32").value(),
                                      RandomConfig(shape), &source);
  EXPECT_EQ(encoder.status(),
            absl::DataLossError(
                "layer 1 lacks a normalization that its architecture needs: "
                "the files are damaged, or the model is not supported"));
}

// Notes the sizes of the matrices that it is told of and given.
class NotingDevice : public ForwardingDevice {
 public:
  using Sizes = std::vector<std::pair<int64_t, int64_t>>;

  NotingDevice(Sizes* told, Sizes* given)
      : ForwardingDevice(OpenDevice("cpu", "fp32").value()),
        told_(*told),
        given_(*given) {}
  absl::Status ExpectModel(const ModelSizes& sizes,
                           const std::vector<WeightSize>& weights) override {
    for (const WeightSize& weight : weights) {
      if (weight.kind == WeightSize::Kind::kLinear)
        told_.emplace_back(weight.rows, weight.cols);
    }
    return ForwardingDevice::ExpectModel(sizes, weights);
  }
  absl::StatusOr<std::unique_ptr<DeviceLinear>> PrepareLinear(
      const LinearWeights& weights, Activation activation) override {
    given_.emplace_back(weights.weight.rows, weights.weight.cols);
    return ForwardingDevice::PrepareLinear(weights, activation);
  }

 private:
  Sizes& told_;
  Sizes& given_;
};

// A device reserves memory for what it is told of.
TEST(EncoderBuildTest, ADeviceIsToldOfEveryMatrixThatItIsGiven) {
  RandomShape projected, shared, gated, rotary;
  projected.embedding = 32;
  shared.layers = 3;
  shared.distinct_layers = 1;
  gated.gated = gated.pre_norm = true;
  rotary.thetas = {10000};
  for (const RandomShape& shape :
       {RandomShape(), projected, shared, gated, rotary}) {
    NotingDevice::Sizes told, given;
    const auto encoder =
        Encoder::Build(std::make_unique<NotingDevice>(&told, &given),
                       RandomConfig(shape), RandomCheckpoint(shape, 1).get());
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    EXPECT_EQ(told, given);
  }
}

// Has no memory.
class FullDevice : public Device {
 public:
  std::string name() const override { return "full"; }
  DType dtype() const override { return DType::kF32; }
  int32_t preferred_sessions() const override { return 1; }
  int64_t default_batch_tokens() const override { return 8; }
  absl::StatusOr<std::unique_ptr<DeviceLinear>> PrepareLinear(
      const LinearWeights&, Activation) override {
    return Full();
  }
  absl::StatusOr<std::unique_ptr<DeviceNorm>> PrepareNorm(NormWeights,
                                                          float) override {
    return Full();
  }
  absl::StatusOr<std::unique_ptr<DeviceEmbeddings>> PrepareEmbeddings(
      EmbeddingWeights, float) override {
    return Full();
  }
  absl::StatusOr<std::unique_ptr<DeviceAttentionBias>> PrepareAttentionBias(
      HostMatrix) override {
    return Full();
  }
  absl::StatusOr<std::unique_ptr<DeviceRotation>> PrepareRotation(
      HostMatrix, HostMatrix) override {
    return Full();
  }
  absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const ExecutorLimits&) const override {
    return Full();
  }

  static absl::Status Full() {
    return absl::ResourceExhaustedError("no memory for a pass");
  }
};

TEST(EncoderSessionTest, PassesTheDevicesErrorOn) {
  const FullDevice device;
  const auto session =
      NewEncoderSession(device, EncoderLayers(), IdLimits(), SessionOptions());
  EXPECT_EQ(session.status(), FullDevice::Full());
}

}  // namespace
}  // namespace encoderd
