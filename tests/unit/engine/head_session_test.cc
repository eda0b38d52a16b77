// Pooled vectors go through the modules after pooling; states do not.
#include "engine/head_session.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/fake_session.h"
#include "tests/support/heap_bytes.h"

namespace encoderd {
namespace {

constexpr int32_t kHidden = 64;
constexpr IdLimits kLimits = {
    .token_rows = 1000, .position_rows = 512, .max_len = 512};

// y = the sum of x.
Head SumHead() {
  HeadModule dense;
  dense.kind = HeadModule::Kind::kDense;
  dense.in = kHidden;
  dense.out = 1;
  dense.bias = false;
  return Head({{dense, std::vector<float>(kHidden, 1), {}}});
}

SequenceOutput States() {
  SequenceOutput output;
  output.kind = SequenceOutput::Kind::kStates;
  return output;
}

class HeadSessionTest : public ::testing::Test {
 protected:
  HeadSessionTest() {
    sequence_.token_ids.assign(512, 7);
    device_.SetLogging(false);
  }

  // A sequence for each output.
  void Run(const std::vector<SequenceOutput>& outputs) {
    PackedBatch batch;
    for (size_t i = 0; i < outputs.size(); ++i)
      batch.Append(sequence_, kLimits);
    ASSERT_TRUE(session_->Run(batch, outputs, &result_).ok());
  }
  std::vector<float> Expected(const SequenceOutput& output) const {
    return device_.Expected(sequence_, kLimits, output);
  }
  std::vector<float> Output(int64_t sequence) const {
    const absl::Span<const float> output = result_.Output(sequence);
    return {output.begin(), output.end()};
  }

  const Head head_ = SumHead();
  FakeDevice device_{4096, kHidden};
  const std::unique_ptr<Session> session_ =
      NewHeadSession(device_.NewSession(), &head_);
  TokenSequence sequence_;
  ForwardResult result_;
};

TEST_F(HeadSessionTest, PassesPooledVectorsThroughTheHead) {
  Run({SequenceOutput(), States()});
  float sum = 0;
  for (const float value : Expected(SequenceOutput())) sum += value;
  EXPECT_EQ(Output(0).size(), 1u);
  EXPECT_FLOAT_EQ(Output(0)[0], sum);
  EXPECT_EQ(Output(1), Expected(States()));
}

TEST_F(HeadSessionTest, LeavesStatesAsTheyAre) {
  Run({States(), States()});
  EXPECT_EQ(Output(0), Expected(States()));
  EXPECT_EQ(Output(1), Expected(States()));
}

// States are as large as everything else that a Session allocates.
TEST_F(HeadSessionTest, KeepsNoStates) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has other malloc statistics";
#endif
  for (const auto& outputs :
       {std::vector<SequenceOutput>{States(), States()},
        std::vector<SequenceOutput>{States(), SequenceOutput()}}) {
    Run({SequenceOutput(), SequenceOutput()});
    result_ = ForwardResult();
    const int64_t before = HeapBytes();
    Run(outputs);
    result_ = ForwardResult();
    EXPECT_LT(HeapBytes() - before, int64_t{512} * kHidden * 4 / 2);
  }
}

}  // namespace
}  // namespace encoderd
