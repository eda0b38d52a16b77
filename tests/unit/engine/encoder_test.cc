#include "engine/encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/random_model.h"
#include "tests/support/reference_encoder.h"
#include "tests/support/tolerances.h"
#include "tests/unit/engine/device/test_devices.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;

struct TestModel {
  std::unique_ptr<const Encoder> encoder;
  std::unique_ptr<Session> session;
  IdLimits limits;
};

TestModel Load(const TestDevice& device, const RandomShape& shape,
               int64_t max_batch_tokens = 0) {
  TestModel model;
  model.limits = RandomLimits(shape);
  model.encoder = Encoder::Build(device.Open(), RandomConfig(shape),
                                 RandomCheckpoint(shape, 1).get())
                      .value();
  model.session = model.encoder->NewSession({max_batch_tokens}).value();
  return model;
}

PackedBatch Pack(const std::vector<TokenSequence>& sequences,
                 const IdLimits& limits) {
  PackedBatch batch;
  for (const TokenSequence& sequence : sequences)
    batch.Append(sequence, limits);
  return batch;
}

SequenceOutput StatesOf(int32_t layer) {
  SequenceOutput output;
  output.kind = SequenceOutput::Kind::kStates;
  output.layer = layer;
  return output;
}

SequenceOutput Pooled(Pooling pooling, bool normalize) {
  SequenceOutput output;
  output.pooling = pooling;
  output.normalize = normalize;
  return output;
}

class EncoderTest : public ::testing::TestWithParam<TestDevice> {
 protected:
  bool fp32() const { return GetParam().dtype == DType::kF32; }

  void ExpectNear(absl::Span<const float> got, const std::vector<double>& want,
                  double fp32_tolerance, const std::string& what) const {
    ASSERT_EQ(got.size(), want.size()) << what;
    if (fp32()) {
      EXPECT_LE(MaxDifference(got.data(), want), fp32_tolerance) << what;
    } else {
      EXPECT_GE(Cosine(got.data(), want), kBf16Cosine) << what;
    }
  }

  // Sequences of every awkward length against the reference.
  void CheckShape(const RandomShape& shape) const {
    TestModel model = Load(GetParam(), shape);
    const ModelConfig config = RandomConfig(shape);
    const ReferenceEncoder reference(config, RandomCheckpoint(shape, 1).get());
    std::mt19937 random(7);
    std::vector<TokenSequence> sequences;
    for (int32_t length : {1, 2, 3, 15, 16, 17, 31, 33, 48, 64, 91, 200}) {
      if (length <= shape.positions)
        sequences.push_back(RandomSequence(length, model.limits, &random));
    }
    const PackedBatch batch = Pack(sequences, model.limits);
    std::vector<SequenceOutput> outputs(sequences.size(),
                                        Pooled(Pooling::kMean, true));
    ForwardResult result;
    ASSERT_TRUE(model.session->Run(batch, outputs, &result).ok());
    for (size_t b = 0; b < sequences.size(); ++b) {
      ExpectNear(result.Output(b),
                 reference.Pooled(sequences[b], Pooling::kMean, true),
                 kFp32Vector, "length " + std::to_string(sequences[b].size()));
    }
  }

  // The states of every layer, with a pooled vector.
  void CheckStates(const RandomShape& shape) const {
    TestModel model = Load(GetParam(), shape);
    const ReferenceEncoder reference(RandomConfig(shape),
                                     RandomCheckpoint(shape, 1).get());
    std::mt19937 random(3);
    std::vector<TokenSequence> sequences;
    std::vector<SequenceOutput> outputs;
    for (int32_t layer = 0; layer <= shape.layers; ++layer) {
      sequences.push_back(RandomSequence(5 + layer, model.limits, &random));
      outputs.push_back(StatesOf(layer));
    }
    sequences.push_back(RandomSequence(9, model.limits, &random));
    outputs.push_back(Pooled(Pooling::kCls, false));
    ForwardResult result;
    ASSERT_TRUE(
        model.session->Run(Pack(sequences, model.limits), outputs, &result)
            .ok());
    for (int32_t layer = 0; layer <= shape.layers; ++layer) {
      ExpectNear(result.Output(layer),
                 reference.States(sequences[layer], layer), kFp32State,
                 "layer " + std::to_string(layer));
    }
    ExpectNear(result.Output(shape.layers + 1),
               reference.Pooled(sequences.back(), Pooling::kCls, false),
               kFp32State, "pooled with states");
  }
};

TEST_P(EncoderTest, EqualsTheReferenceAtHeadSize32) {
  RandomShape shape;
  shape.hidden = 128;
  CheckShape(shape);
}

TEST_P(EncoderTest, EqualsTheReferenceAtHeadSize64) {
  RandomShape shape;
  shape.hidden = 128;
  shape.heads = 2;
  shape.inner = 512;
  CheckShape(shape);
}

TEST_P(EncoderTest, EqualsTheReferenceAtOddSizes) {
  RandomShape shape;
  shape.hidden = 75;  // head size 25
  shape.heads = 3;
  shape.inner = 77;
  shape.segments = 0;
  shape.activation = Activation::kGeluTanh;
  CheckShape(shape);
  shape.hidden = 7;  // head size 1
  shape.heads = 7;
  shape.activation = Activation::kRelu;
  CheckShape(shape);
}

TEST_P(EncoderTest, EqualsTheReferenceWithTablesOfAnotherWidth) {
  RandomShape shape;
  for (const int32_t embedding : {1, 19, 64, 200}) {
    shape.embedding = embedding;
    CheckShape(shape);
  }
}

TEST_P(EncoderTest, EqualsTheReferenceWithSharedLayersAndARelativeBias) {
  RandomShape shape;
  shape.layers = 4;
  shape.relative_bias = true;
  shape.positions = 200;  // beyond where the last bucket begins
  for (const int32_t distinct : {1, 3}) {
    shape.distinct_layers = distinct;
    CheckShape(shape);
  }
}

TEST_P(EncoderTest, EqualsTheReferenceWithNormsFirst) {
  RandomShape shape;
  shape.pre_norm = true;
  CheckShape(shape);
  shape.outer_norms = false;
  shape.layers = 3;
  CheckShape(shape);
}

// GPT-2's form.
TEST_P(EncoderTest, EqualsTheReferenceWithNormsFirstAndACausalMask) {
  RandomShape shape;
  shape.pre_norm = true;
  shape.segments = 0;
  shape.reaches = {{-1, 0}};
  shape.activation = Activation::kGeluTanh;
  CheckShape(shape);
}

TEST_P(EncoderTest, EqualsTheReferenceWithAGate) {
  for (const bool pre_norm : {false, true}) {
    RandomShape shape;
    shape.gated = true;
    shape.pre_norm = pre_norm;
    CheckShape(shape);
  }
}

// ModernBERT's form.
TEST_P(EncoderTest, EqualsTheReferenceWithRotationsAndWindows) {
  RandomShape shape;
  shape.layers = 4;
  shape.pre_norm = shape.gated = true;
  shape.segments = 0;
  shape.thetas = {160000, 10000, 10000};
  shape.reaches = {{-1, -1}, {8, 8}, {8, 8}};
  CheckShape(shape);
  shape.heads = 2;  // of 32 columns
  shape.reaches = {{0, 0}, {3, -1}};
  CheckShape(shape);
}

TEST_P(EncoderTest, EqualsTheReferenceAtManyHeadSizes) {
  for (int32_t head_size : {4, 8, 12, 24, 40, 48, 80, 96, 128}) {
    RandomShape shape;
    shape.layers = 1;
    shape.heads = 2;
    shape.hidden = 2 * head_size;
    CheckShape(shape);
  }
}

TEST_P(EncoderTest, GivesTheStatesOfEveryLayer) {
  RandomShape shape;
  shape.layers = 3;
  CheckStates(shape);
}

// Those of the last layer are after the last norm, those of the others before
// any.
TEST_P(EncoderTest, GivesTheStatesOfEveryLayerWithNormsFirst) {
  RandomShape shape;
  shape.layers = 3;
  shape.pre_norm = true;
  CheckStates(shape);
  shape.outer_norms = false;
  CheckStates(shape);
}

TEST_P(EncoderTest, GivesTheSumOfTheTableRowsBeforeTheLayerNorm) {
  for (int32_t embedding : {0, 19, 100}) {
    RandomShape shape;
    shape.hidden = 75;
    shape.heads = 3;
    shape.segments = embedding == 0 ? 0 : 2;
    shape.embedding = embedding;
    TestModel model = Load(GetParam(), shape);
    const ReferenceEncoder reference(RandomConfig(shape),
                                     RandomCheckpoint(shape, 1).get());
    std::mt19937 random(3);
    std::vector<TokenSequence> sequences;
    for (int32_t length : {7, 64, 1, 9})
      sequences.push_back(RandomSequence(length, model.limits, &random));
    const std::vector<SequenceOutput> outputs = {
        StatesOf(kTableSum), StatesOf(kTableSum), StatesOf(0),
        Pooled(Pooling::kMean, true)};
    ForwardResult result;
    ASSERT_TRUE(
        model.session->Run(Pack(sequences, model.limits), outputs, &result)
            .ok());
    for (int b : {0, 1, 2}) {
      ExpectNear(
          result.Output(b), reference.States(sequences[b], outputs[b].layer),
          b < 2 ? kFp32TableSum : kFp32State, "sequence " + std::to_string(b));
    }
    ExpectNear(result.Output(3),
               reference.Pooled(sequences[3], Pooling::kMean, true),
               kFp32Vector, "pooled with sums");
  }
}

TEST_P(EncoderTest, PoolsInEveryWay) {
  const RandomShape shape;
  TestModel model = Load(GetParam(), shape);
  const ReferenceEncoder reference(RandomConfig(shape),
                                   RandomCheckpoint(shape, 1).get());
  std::mt19937 random(5);
  std::vector<TokenSequence> sequences;
  std::vector<SequenceOutput> outputs;
  for (Pooling pooling :
       {Pooling::kCls, Pooling::kMean, Pooling::kMax, Pooling::kMeanSqrtLen,
        Pooling::kWeightedMean, Pooling::kLastToken}) {
    sequences.push_back(RandomSequence(13, model.limits, &random));
    outputs.push_back(Pooled(pooling, true));
  }
  ForwardResult result;
  ASSERT_TRUE(
      model.session->Run(Pack(sequences, model.limits), outputs, &result).ok());
  for (size_t b = 0; b < sequences.size(); ++b) {
    ExpectNear(result.Output(b),
               reference.Pooled(sequences[b], outputs[b].pooling, true),
               kFp32Vector, PoolingName(outputs[b].pooling));
  }
}

TEST_P(EncoderTest, TakesExplicitPositionsUpToTheLast) {
  RandomShape rotary;
  rotary.pre_norm = rotary.gated = true;
  rotary.thetas = {160000, 10000};
  for (const RandomShape& shape : {RandomShape(), rotary}) {
    TestModel model = Load(GetParam(), shape);
    const ReferenceEncoder reference(RandomConfig(shape),
                                     RandomCheckpoint(shape, 1).get());
    TokenSequence sequence;
    sequence.token_ids = {5, 6, 7};
    sequence.position_ids = {model.limits.position_rows - 1, 0, 31};
    ForwardResult result;
    const SequenceOutput output = Pooled(Pooling::kMean, true);
    ASSERT_TRUE(
        model.session->Run(Pack({sequence}, model.limits), {output}, &result)
            .ok());
    ExpectNear(result.Output(0),
               reference.Pooled(sequence, Pooling::kMean, true), kFp32Vector,
               "positions up to the last, 0, 31");
  }
}

TEST_P(EncoderTest, RefusesABatchOverItsLimit) {
  RandomShape shape;
  TestModel model = Load(GetParam(), shape, 100);
  EXPECT_EQ(model.session->max_batch_tokens(), 100);
  std::mt19937 random(3);
  std::vector<TokenSequence> sequences;
  for (int i = 0; i < 2; ++i)
    sequences.push_back(RandomSequence(51, model.limits, &random));
  const std::vector<SequenceOutput> outputs(2);
  ForwardResult result;
  const absl::Status status =
      model.session->Run(Pack(sequences, model.limits), outputs, &result);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("102 tokens"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most 100"));
}

TEST_P(EncoderTest, RefusesAnIdOutsideItsTable) {
  const RandomShape shape;
  TestModel model = Load(GetParam(), shape);
  IdLimits wider = model.limits;
  wider.token_rows += 1;
  TokenSequence sequence;
  sequence.token_ids = {shape.vocabulary};
  const std::vector<SequenceOutput> outputs(1);
  ForwardResult result;
  EXPECT_EQ(
      model.session->Run(Pack({sequence}, wider), outputs, &result).code(),
      absl::StatusCode::kInternal);
}

TEST_P(EncoderTest, RefusesALayerItDoesNotHave) {
  const RandomShape shape;
  TestModel model = Load(GetParam(), shape);
  TokenSequence sequence;
  sequence.token_ids = {1};
  ForwardResult result;
  const absl::Status status = model.session->Run(
      Pack({sequence}, model.limits), {StatesOf(shape.layers + 1)}, &result);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("layer 3"));
}

TEST_P(EncoderTest, WorksAgainAfterARefusal) {
  const RandomShape shape;
  TestModel model = Load(GetParam(), shape, 64);
  std::mt19937 random(3);
  const TokenSequence sequence = RandomSequence(40, model.limits, &random);
  const std::vector<SequenceOutput> outputs(1);
  ForwardResult first, again;
  ASSERT_TRUE(
      model.session->Run(Pack({sequence}, model.limits), outputs, &first).ok());
  const std::vector<SequenceOutput> two(2);
  ASSERT_FALSE(
      model.session->Run(Pack({sequence, sequence}, model.limits), two, &again)
          .ok());
  ASSERT_TRUE(
      model.session->Run(Pack({sequence}, model.limits), outputs, &again).ok());
  EXPECT_EQ(first.values, again.values);
}

TEST_P(EncoderTest, RaisesTheLimitToTheLongestInput) {
  const RandomShape shape;
  TestModel model = Load(GetParam(), shape, 8);
  EXPECT_EQ(model.session->max_batch_tokens(), shape.positions);
}

INSTANTIATE_TEST_SUITE_P(Devices, EncoderTest,
                         ::testing::ValuesIn(TestDevices()),
                         [](const ::testing::TestParamInfo<TestDevice>& info) {
                           return TestDeviceName(info.param);
                         });

}  // namespace
}  // namespace encoderd
