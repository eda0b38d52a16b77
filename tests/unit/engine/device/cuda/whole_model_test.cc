// Whole forward passes on a card, against the encoder in double; promise 1.
#include <gmock/gmock.h>

#include <cmath>

#include "engine/encoder.h"
#include "tests/support/random_model.h"
#include "tests/support/reference_encoder.h"
#include "tests/support/tolerances.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

RandomShape SmallShape() {
  RandomShape shape;
  shape.hidden = 64;
  shape.heads = 2;
  shape.inner = 136;
  shape.positions = 96;
  return shape;
}

RandomShape Fp8Shape() {
  RandomShape shape = SmallShape();
  shape.inner = 144;
  return shape;
}

// The forms of other architectures.
RandomShape LikeGpt2(RandomShape shape) {
  shape.pre_norm = true;
  shape.segments = 0;
  shape.reaches = {{-1, 0}};
  shape.activation = Activation::kGeluTanh;
  return shape;
}

RandomShape LikeModernBert(RandomShape shape) {
  shape.pre_norm = shape.gated = true;
  shape.segments = 0;
  shape.thetas = {160000, 10000};
  shape.reaches = {{-1, -1}, {8, 8}};
  return shape;
}

std::unique_ptr<const Encoder> Build(const RandomShape& shape, DType dtype,
                                     const std::string& operands = "dtype",
                                     bool graphs = true) {
  auto card = OpenTestCard(dtype, operands);
  card->AllowGraphs(graphs);
  return Encoder::Build(std::move(card), RandomConfig(shape),
                        RandomCheckpoint(shape, 1).get())
      .value();
}

// A row as a product in e4m3 multiplies it.
void RoundToE4m3(double* row, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::fabs(row[i]));
  const double scale = largest / kLargestE4m3;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(row[i] / scale);
    row[i] = scale * emulation::FromE4m3(emulation::ToE4m3(value));
  }
}

std::vector<TokenSequence> Sequences(const RandomShape& shape,
                                     const std::vector<int32_t>& lengths) {
  std::mt19937 random(7);
  std::vector<TokenSequence> sequences;
  for (const int32_t length : lengths)
    sequences.push_back(RandomSequence(length, RandomLimits(shape), &random));
  return sequences;
}

ForwardResult RunPass(Session* session, const RandomShape& shape,
                      const std::vector<TokenSequence>& sequences,
                      const std::vector<SequenceOutput>& outputs) {
  PackedBatch batch;
  for (const TokenSequence& sequence : sequences)
    batch.Append(sequence, RandomLimits(shape));
  ForwardResult result;
  const absl::Status status = session->Run(batch, outputs, &result);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(result.note, "");  // graphs, where there are any, are trusted
  return result;
}

void ExpectNear(absl::Span<const float> got, const std::vector<double>& want,
                DType dtype) {
  ASSERT_EQ(got.size(), want.size());
  if (dtype == DType::kF32) {
    EXPECT_LE(MaxDifference(got.data(), want), kFp32State);
  } else {
    EXPECT_GE(Cosine(got.data(), want), kBf16Cosine);
  }
}

TEST(CudaModelTest, EqualsTheReferenceForEveryActivationAndOutput) {
  for (const DType dtype : kDTypes) {
    for (const Activation activation :
         {Activation::kGeluErf, Activation::kGeluTanh, Activation::kRelu}) {
      RandomShape shape = SmallShape();
      shape.activation = activation;
      shape.segments = activation == Activation::kRelu ? 0 : 2;
      const auto encoder = Build(shape, dtype);
      const auto session = encoder->NewSession({256}).value();
      const ReferenceEncoder reference(RandomConfig(shape),
                                       RandomCheckpoint(shape, 1).get());
      const auto sequences = Sequences(shape, {1, 16, 33, 96, 7, 2});
      std::vector<SequenceOutput> outputs(sequences.size());
      outputs[0].normalize = true;
      outputs[2].pooling = Pooling::kCls;
      for (const int32_t layer : {0, 1, 2}) {
        outputs[3 + layer].kind = SequenceOutput::Kind::kStates;
        outputs[3 + layer].layer = layer;
      }
      const ForwardResult result =
          RunPass(session.get(), shape, sequences, outputs);
      for (size_t b = 0; b < sequences.size(); ++b) {
        SCOPED_TRACE(std::string(DTypeName(dtype)) + ", sequence " +
                     std::to_string(b));
        const bool pooled = outputs[b].kind == SequenceOutput::Kind::kPooled;
        ExpectNear(result.Output(b),
                   pooled ? reference.Pooled(sequences[b], outputs[b].pooling,
                                             outputs[b].normalize)
                          : reference.States(sequences[b], outputs[b].layer),
                   dtype);
      }
    }
  }
}

void ExpectEqualsTheReference(const RandomShape& shape) {
  const ReferenceEncoder reference(RandomConfig(shape),
                                   RandomCheckpoint(shape, 1).get());
  const auto sequences = Sequences(shape, {1, 16, 33, 96, 7, 65});
  std::vector<SequenceOutput> outputs(sequences.size());
  outputs[4].kind = SequenceOutput::Kind::kStates;
  outputs[4].layer = 1;
  for (const DType dtype : kDTypes) {
    const auto encoder = Build(shape, dtype);
    const auto session = encoder->NewSession({256}).value();
    const ForwardResult result =
        RunPass(session.get(), shape, sequences, outputs);
    for (size_t b = 0; b < sequences.size(); ++b) {
      SCOPED_TRACE(std::string(DTypeName(dtype)) + ", sequence " +
                   std::to_string(b));
      ExpectNear(result.Output(b),
                 b == 4 ? reference.States(sequences[b], 1)
                        : reference.Pooled(sequences[b], Pooling::kMean, false),
                 dtype);
    }
  }
}

TEST(CudaModelTest, EqualsTheReferenceWithABiasInAttention) {
  RandomShape shape = SmallShape();
  shape.relative_bias = true;
  ExpectEqualsTheReference(shape);
}

TEST(CudaModelTest, EqualsTheReferenceWithNormsFirstAndACausalMask) {
  ExpectEqualsTheReference(LikeGpt2(SmallShape()));
}

TEST(CudaModelTest, EqualsTheReferenceWithAGateRotationsAndWindows) {
  RandomShape shape = LikeModernBert(SmallShape());
  ExpectEqualsTheReference(shape);
  shape.outer_norms = false;
  ExpectEqualsTheReference(shape);
}

// With the rounding to 8 bits in the reference too only that of states to 16 is
// left. Where it turns a code, the step is 8 bits wide: a mean over few tokens
// shows that, so those are held to fp8's own promise alone.
void ExpectEqualsTheReferenceInFp8(const RandomShape& shape) {
  const auto checkpoint = RandomCheckpoint(shape, 1);
  const ReferenceEncoder rounded(RandomConfig(shape), checkpoint.get(),
                                 &RoundToE4m3);
  const ReferenceEncoder exact(RandomConfig(shape), checkpoint.get());
  const auto sequences = Sequences(shape, {1, 16, 33, 96, 7, 65});
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const auto encoder = Build(shape, dtype, "fp8");
    const auto session = encoder->NewSession({256}).value();
    const ForwardResult result =
        RunPass(session.get(), shape, sequences,
                std::vector<SequenceOutput>(sequences.size()));
    for (size_t b = 0; b < sequences.size(); ++b) {
      const auto cosine = [&](const ReferenceEncoder& reference) {
        return Cosine(result.Output(b).data(),
                      reference.Pooled(sequences[b], Pooling::kMean, false));
      };
      if (sequences[b].size() >= 16) {
        EXPECT_GE(cosine(rounded), kBf16Cosine) << DTypeName(dtype) << b;
      }
      EXPECT_GE(cosine(exact), kFp8Cosine) << DTypeName(dtype) << b;
      EXPECT_LT(cosine(exact), cosine(rounded)) << DTypeName(dtype) << b;
    }
  }
}

TEST(CudaModelTest, EqualsTheReferenceInFp8ForEveryActivation) {
  if (!HasE4m3()) GTEST_SKIP() << "fp8 products need compute capability 9.0";
  for (const Activation activation :
       {Activation::kGeluErf, Activation::kGeluTanh, Activation::kRelu}) {
    RandomShape shape = Fp8Shape();
    shape.activation = activation;
    shape.embedding = activation == Activation::kRelu ? 32 : 0;
    ExpectEqualsTheReferenceInFp8(shape);
  }
}

TEST(CudaModelTest, EqualsTheReferenceInFp8WithNormsFirst) {
  if (!HasE4m3()) GTEST_SKIP() << "fp8 products need compute capability 9.0";
  ExpectEqualsTheReferenceInFp8(LikeGpt2(Fp8Shape()));
  ExpectEqualsTheReferenceInFp8(LikeModernBert(Fp8Shape()));
}

RandomShape WithARelativeBias(RandomShape shape) {
  shape.relative_bias = true;
  return shape;
}

struct Form {
  const char* name;
  RandomShape shape;
};

const std::pair<DType, std::string> kNumbers[] = {{DType::kF32, "dtype"},
                                                  {DType::kF16, "dtype"},
                                                  {DType::kBF16, "dtype"},
                                                  {DType::kBF16, "fp8"}};

class CudaCompanyTest : public ::testing::TestWithParam<Form> {};

TEST_P(CudaCompanyTest, GivesTheSameBitsInAnyBatchAndSession) {
  RandomShape shape = GetParam().shape;
  const auto sequences =
      Sequences(shape, {1, 3, 8, 15, 16, 17, 31, 40, 64, 65, 80, 96});
  const int batches = IsEmulated() ? 4 : 200;
  for (const auto& [dtype, operands] : kNumbers) {
    if (operands == "fp8" && !HasE4m3()) continue;
    if (operands == "fp8") shape.inner = Fp8Shape().inner;
    const auto encoder = Build(shape, dtype, operands);
    std::vector<std::vector<float>> alone;
    const auto first = encoder->NewSession({256}).value();
    SequenceOutput output;
    output.normalize = true;
    for (const TokenSequence& sequence : sequences)
      alone.push_back(RunPass(first.get(), shape, {sequence}, {output}).values);
    const auto second = encoder->NewSession({256}).value();
    std::mt19937 random(3);
    for (int b = 0; b < batches; ++b) {
      std::vector<size_t> which;
      std::vector<TokenSequence> batch;
      int64_t room = 1 + static_cast<int64_t>(random() % 256);
      for (;;) {
        const size_t i = random() % sequences.size();
        room -= sequences[i].size();
        if (room < 0 && !which.empty()) break;
        which.push_back(i);
        batch.push_back(sequences[i]);
      }
      const std::vector<SequenceOutput> outputs(batch.size(), output);
      const ForwardResult result = RunPass(second.get(), shape, batch, outputs);
      for (size_t k = 0; k < which.size(); ++k) {
        const std::vector<float>& want = alone[which[k]];
        ASSERT_EQ(
            std::memcmp(result.Output(k).data(), want.data(), want.size() * 4),
            0)
            << DTypeName(dtype) << ", " << operands << ", batch " << b
            << ", sequence " << k;
      }
    }
  }
}

// The last layer is computed for one row of each sequence, or for all rows
// where one sequence needs all.
TEST_P(CudaCompanyTest, GivesNeededRowsTheBitsOfAllRows) {
  RandomShape shape = GetParam().shape;
  std::vector<TokenSequence> sequences =
      Sequences(shape, {17, 1, 65, 16, 2, 80, 9});
  std::vector<SequenceOutput> outputs(sequences.size());
  for (size_t b = 0; b < outputs.size(); ++b) {
    outputs[b].pooling = b % 2 == 0 ? Pooling::kCls : Pooling::kLastToken;
    outputs[b].normalize = b % 3 == 0;
  }
  outputs[3].kind = SequenceOutput::Kind::kStates;
  outputs[3].layer = shape.layers - 1;
  for (const auto& [dtype, operands] : kNumbers) {
    if (operands == "fp8" && !HasE4m3()) continue;
    if (operands == "fp8") shape.inner = Fp8Shape().inner;
    const auto encoder = Build(shape, dtype, operands);
    const auto session = encoder->NewSession({256}).value();
    auto with_all_rows = sequences;
    auto all_outputs = outputs;
    with_all_rows.push_back(sequences.front());
    all_outputs.emplace_back();  // the mean
    const ForwardResult all =
        RunPass(session.get(), shape, with_all_rows, all_outputs);
    for (int run = 0; run < 3; ++run) {  // the third by graphs alone
      const ForwardResult needed =
          RunPass(session.get(), shape, sequences, outputs);
      ASSERT_EQ(std::memcmp(needed.values.data(), all.values.data(),
                            needed.values.size() * 4),
                0)
          << DTypeName(dtype) << ", " << operands << ", run " << run;
    }
  }
}

// Without graphs, which pad: products want rows aligned, however many there
// are.
TEST_P(CudaCompanyTest, PicksAnyCountOfRows) {
  const RandomShape& shape = GetParam().shape;
  std::vector<TokenSequence> sequences =
      Sequences(shape, {5, 1, 9, 17, 2, 65, 3});
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const auto encoder = Build(shape, dtype, "dtype", /*graphs=*/false);
    const auto session = encoder->NewSession({256}).value();
    SequenceOutput output;
    output.pooling = Pooling::kCls;
    std::vector<float> want;
    for (size_t count = 1; count <= sequences.size(); ++count) {
      const std::vector<TokenSequence> some(sequences.begin(),
                                            sequences.begin() + count);
      const std::vector<SequenceOutput> outputs(count, output);
      const std::vector<float> got =
          RunPass(session.get(), shape, some, outputs).values;
      ASSERT_EQ(std::memcmp(got.data(), want.data(), want.size() * 4), 0)
          << DTypeName(dtype) << ", " << count;
      want = got;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, CudaCompanyTest,
    ::testing::Values(Form{"Bert", SmallShape()},
                      Form{"Biased", WithARelativeBias(SmallShape())},
                      Form{"Gpt2", LikeGpt2(SmallShape())},
                      Form{"ModernBert", LikeModernBert(SmallShape())}),
    [](const ::testing::TestParamInfo<Form>& info) { return info.param.name; });

TEST(CudaModelTest, TellsWhatItTakesBeforeItTakesIt) {
  const auto encoder = Build(SmallShape(), DType::kBF16);
  const size_t notes = encoder->device().notes().size();
  ASSERT_GE(notes, 1u);
  if (IsEmulated()) {
    EXPECT_EQ(notes, 1u);  // a card tells more
  }
  EXPECT_THAT(encoder->device().notes()[0],
              ::testing::HasSubstr("the model takes"));
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
