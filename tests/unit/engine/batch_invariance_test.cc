// Promise 1: the same ids give the same bits, alone or in any batch, in any
// Session, on any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "engine/base/pooling.h"
#include "engine/encoder.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/test_devices.h"

namespace encoderd {
namespace {

constexpr int kSequences = 48;
// AddressSanitizer makes a batch thirty times as slow, and it looks for faults
// of memory, not at bits: ten batches reach every line.
#ifdef __SANITIZE_ADDRESS__
constexpr int kBatches = 10;
#else
constexpr int kBatches = 200;
#endif

struct TestModel {
  std::string name;
  RandomShape shape;
};

std::vector<TestModel> TestModels() {
  RandomShape bert;
  bert.hidden = 96;
  bert.heads = 3;
  bert.inner = 384;
  bert.positions = 160;
  RandomShape other = bert;
  other.embedding = 40;
  other.distinct_layers = 1;
  other.relative_bias = true;
  RandomShape causal = bert;
  causal.pre_norm = true;
  causal.reaches = {{-1, 0}};
  RandomShape rotary = bert;
  rotary.pre_norm = rotary.gated = true;
  rotary.thetas = {160000, 10000};
  rotary.reaches = {{-1, -1}, {12, 12}};
  return {{"bert", bert},
          {"factored_shared_biased", other},
          {"norms_first_causal", causal},
          {"norms_first_gated_rotary", rotary}};
}

class BatchInvarianceTest
    : public ::testing::TestWithParam<std::tuple<TestDevice, TestModel>> {
 protected:
  void SetUp() override {
    const auto& [device, model] = GetParam();
    const RandomShape& shape = model.shape;
    limits_ = RandomLimits(shape);
    encoder_ = Build(1);
    std::mt19937 random(11);
    std::lognormal_distribution<double> lengths(3.0, 1.0);
    for (int i = 0; i < kSequences; ++i) {
      const auto length =
          static_cast<int32_t>(std::min(160.0, 1 + lengths(random)));
      sequences_.push_back(RandomSequence(length, limits_, &random));
      SequenceOutput output;
      output.normalize = i % 2 == 0;
      if (i % 5 == 0) output.pooling = Pooling::kMax;
      if (i % 5 == 1) output.pooling = Pooling::kCls;
      if (i % 5 == 3) output.pooling = Pooling::kLastToken;
      if (i % 7 == 0) {
        output.kind = SequenceOutput::Kind::kStates;
        output.layer = i % 4 - 1;  // kTableSum, 0, 1, 2
      }
      outputs_.push_back(output);
    }
    const auto session = encoder_->NewSession({1024}).value();
    for (int i = 0; i < kSequences; ++i)
      alone_.push_back(Run(session.get(), {i}).values);
  }

  // Of a device on which one pass may have `cores` threads.
  static std::unique_ptr<const Encoder> Build(int32_t cores) {
    const auto& [device, model] = GetParam();
    return Encoder::Build(device.Open(std::make_shared<cpu::Team>(cores)),
                          RandomConfig(model.shape),
                          RandomCheckpoint(model.shape, 1).get())
        .value();
  }

  ForwardResult Run(Session* session, const std::vector<int>& which) const {
    PackedBatch batch;
    std::vector<SequenceOutput> outputs;
    for (const int i : which) {
      batch.Append(sequences_[i], limits_);
      outputs.push_back(outputs_[i]);
    }
    ForwardResult result;
    const absl::Status status = session->Run(batch, outputs, &result);
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }

  // Whether it needs at most one row of the last layer.
  bool NeedsOneRow(int i) const {
    return outputs_[i].kind == SequenceOutput::Kind::kStates
               ? outputs_[i].layer < 2
               : PooledRow(outputs_[i].pooling, 1) >= 0;
  }

  // `batches` random batches in a separate Session, every other one of
  // sequences that need one row alone; the number of outputs whose bits differ
  // from those of the sequence alone.
  int Differences(const Encoder& encoder, uint32_t seed, int batches,
                  Pauses* pauses = nullptr) const {
    const auto session = encoder.NewSession({1024}).value();
    session->SetPauses(pauses);
    // Those that leave their cores to it.
    const auto idle = {encoder.NewSession({1024}), encoder.NewSession({1024}),
                       encoder.NewSession({1024})};
    EXPECT_TRUE(std::begin(idle)->ok());
    std::mt19937 random(seed);
    int differences = 0;
    for (int b = 0; b < batches; ++b) {
      std::vector<int> which;
      int64_t room = 1 + static_cast<int64_t>(random() % 1024);
      for (;;) {
        const auto i = static_cast<int>(random() % kSequences);
        if (b % 2 == 1 && !NeedsOneRow(i)) continue;
        room -= sequences_[i].size();
        if (room < 0 && !which.empty()) break;
        which.push_back(i);
      }
      differences += Differences(Run(session.get(), which), which);
    }
    return differences;
  }

  int Differences(const ForwardResult& result,
                  const std::vector<int>& which) const {
    int differences = 0;
    for (size_t k = 0; k < which.size(); ++k) {
      const absl::Span<const float> got = result.Output(k);
      const std::vector<float>& want = alone_[which[k]];
      if (got.size() != want.size() ||
          std::memcmp(got.data(), want.data(), want.size() * 4) != 0)
        ++differences;
    }
    return differences;
  }

  // Passes of the short sequences in the pauses of another.
  class ShortPasses : public Pauses {
   public:
    ShortPasses(const BatchInvarianceTest* test, const Encoder& encoder)
        : test_(*test) {
      SessionOptions options;
      options.max_batch_tokens = options.max_len = 16;
      options.in_pauses = true;
      session_ = encoder.NewSession(options).value();
    }
    bool Wanted() override { return random_() % 4 == 0; }
    void Run() noexcept override {
      const auto i = static_cast<int>(random_() % kSequences);
      if (test_.sequences_[i].size() > 16) return;
      differences += test_.Differences(test_.Run(session_.get(), {i}), {i});
      ++passes;
    }
    int differences = 0;
    int passes = 0;

   private:
    const BatchInvarianceTest& test_;
    std::unique_ptr<Session> session_;
    std::mt19937 random_{5};
  };

  IdLimits limits_;
  std::unique_ptr<const Encoder> encoder_;
  std::vector<TokenSequence> sequences_;
  std::vector<SequenceOutput> outputs_;
  std::vector<std::vector<float>> alone_;
};

TEST_P(BatchInvarianceTest, GivesTheSameBitsInEveryBatch) {
  EXPECT_EQ(Differences(*encoder_, 1, kBatches), 0);
}

TEST_P(BatchInvarianceTest, GivesTheSameBitsToAnyNumberOfThreads) {
  for (const int32_t cores : {2, 3, 4}) {
    EXPECT_EQ(Differences(*Build(cores), cores, kBatches / 10), 0) << cores;
  }
}

// Long enough that heads are divided by query rows. Its products have few rows
// enough that columns are divided, too.
TEST_P(BatchInvarianceTest, GivesALongTextTheSameBitsOnManyCores) {
  auto [device, model] = GetParam();
  model.shape.positions = 400;
  const IdLimits limits = RandomLimits(model.shape);
  const auto build = [&, &device = device, &model = model](int32_t cores) {
    return Encoder::Build(device.Open(std::make_shared<cpu::Team>(cores)),
                          RandomConfig(model.shape),
                          RandomCheckpoint(model.shape, 1).get())
        .value();
  };
  std::mt19937 random(5);
  PackedBatch batch;
  for (const int32_t length : {17, 400, 250})
    batch.Append(RandomSequence(length, limits, &random), limits);
  std::vector<SequenceOutput> outputs(3);
  const auto run = [&](const Encoder& encoder) {
    std::vector<std::unique_ptr<Session>> sessions;
    for (int i = 0; i < 16; ++i)
      sessions.push_back(encoder.NewSession({1024}).value());
    ForwardResult result;
    EXPECT_TRUE(sessions[0]->Run(batch, outputs, &result).ok());
    return result.values;
  };
  const std::vector<float> alone = run(*build(1));
  for (const int32_t cores : {5, 16}) EXPECT_EQ(run(*build(cores)), alone);
  // A needed row lies in one of the pieces of a head; the others compute none.
  for (const Pooling second : {Pooling::kCls, Pooling::kLastToken}) {
    outputs[0].pooling = outputs[2].pooling = Pooling::kCls;
    outputs[1].pooling = second;
    const std::vector<float> of_needed_rows = run(*build(1));
    for (const int32_t cores : {5, 16})
      EXPECT_EQ(run(*build(cores)), of_needed_rows);
    outputs[0].pooling = Pooling::kMean;
    std::vector<float> of_all_rows = run(*build(16));
    std::copy_n(of_needed_rows.begin(), model.shape.hidden,
                of_all_rows.begin());
    EXPECT_EQ(of_all_rows, of_needed_rows);
  }
}

// Whose passes come and go, and with them the help that each has.
TEST_P(BatchInvarianceTest, GivesTheSameBitsToPassesSideBySide) {
  const auto encoder = Build(2);
  int differences[2] = {-1, -1};
  std::thread first(
      [&] { differences[0] = Differences(*encoder, 2, kBatches / 2); });
  std::thread second(
      [&] { differences[1] = Differences(*encoder, 3, kBatches / 2); });
  first.join();
  second.join();
  EXPECT_EQ(differences[0], 0);
  EXPECT_EQ(differences[1], 0);
}

TEST_P(BatchInvarianceTest, GivesTheSameBitsInPausesAndAroundThem) {
  for (const int32_t cores : {1, 2}) {
    const auto encoder = Build(cores);
    ShortPasses passes(this, *encoder);
    EXPECT_EQ(Differences(*encoder, 4, kBatches / 10, &passes), 0) << cores;
    EXPECT_EQ(passes.differences, 0) << cores;
    EXPECT_GT(passes.passes, 0) << cores;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Devices, BatchInvarianceTest,
    ::testing::Combine(::testing::ValuesIn(TestDevicesAndInt8()),
                       ::testing::ValuesIn(TestModels())),
    [](const ::testing::TestParamInfo<BatchInvarianceTest::ParamType>& info) {
      return TestDeviceName(std::get<0>(info.param)) + "_" +
             std::get<1>(info.param).name;
    });

}  // namespace
}  // namespace encoderd
