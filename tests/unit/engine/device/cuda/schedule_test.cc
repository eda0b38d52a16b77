// Kernels whose warps run in other orders, and whose copies land early or late,
// give the same bits: what one warp leaves in shared memory for another lies
// behind a barrier, and so does what it overwrites.
#include "engine/encoder.h"
#include "tests/support/cuda/emulation.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/cuda/attention_runs.h"

namespace encoderd {
namespace cuda {
namespace {

using emulation::Copies;
using emulation::Schedule;

class ScheduleTest : public ::testing::TestWithParam<DType> {
 protected:
  void TearDown() override {
    emulation::SetSchedule(Schedule::kForward);
    emulation::SetCopies(Copies::kLate);
  }

  std::vector<float> Vectors() const {
    RandomShape shape;
    shape.layers = 1;
    shape.hidden = 64;
    shape.heads = 2;
    shape.positions = 192;
    const auto encoder =
        Encoder::Build(OpenTestCard(GetParam()), RandomConfig(shape),
                       RandomCheckpoint(shape, 1).get());
    const auto session = (*encoder)->NewSession({256}).value();
    std::mt19937 random(1);
    PackedBatch batch;
    for (const int32_t length : {130, 65, 40, 16, 1})
      batch.Append(RandomSequence(length, RandomLimits(shape), &random),
                   RandomLimits(shape));
    std::vector<SequenceOutput> outputs(5);
    for (SequenceOutput& output : outputs) output.normalize = true;
    ForwardResult result;
    EXPECT_TRUE(session->Run(batch, outputs, &result).ok());
    return result.values;
  }
};

TEST_P(ScheduleTest, GivesTheSameBitsInAnyOrderOfWarpsLanesAndCopies) {
  const std::vector<float> want = Vectors();
  for (const Copies copies : {Copies::kLate, Copies::kEarly}) {
    emulation::SetCopies(copies);
    for (const Schedule schedule : {Schedule::kForward, Schedule::kBackward}) {
      emulation::SetSchedule(schedule);
      EXPECT_EQ(Vectors(), want);
    }
    for (uint32_t seed = 0; seed < 4; ++seed) {
      emulation::SetSchedule(Schedule::kRandom, seed);
      EXPECT_EQ(Vectors(), want) << seed;
    }
  }
}

TEST_P(ScheduleTest, GivesAttentionTheSameBitsOnEveryPathAndHeadSize) {
  std::mt19937 random(2);
  for (const int32_t head_size : {32, 64, 128}) {
    if (GetParam() == DType::kF32 && head_size > 32) break;  // one kernel
    for (const auto& [bias_tokens, reach] :
         {std::pair(0, Reach()), std::pair(150, Reach()),
          std::pair(0, Reach{20, 5})}) {
      const AttentionCase c = {{150, 128, 90, 64, 33, 16, 3},
                               2,
                               head_size,
                               1.0f,
                               bias_tokens,
                               kAllAttentionPaths,
                               false,
                               reach};
      const std::vector<float> qkv =
          RandomValues(c.tokens() * 3 * c.hidden(), GetParam(), &random);
      const std::vector<float> want = RunAttention(qkv, c, GetParam());
      for (const Copies copies : {Copies::kLate, Copies::kEarly}) {
        emulation::SetCopies(copies);
        emulation::SetSchedule(Schedule::kBackward);
        EXPECT_EQ(RunAttention(qkv, c, GetParam()), want) << head_size;
        emulation::SetSchedule(Schedule::kRandom, 1);
        EXPECT_EQ(RunAttention(qkv, c, GetParam()), want) << head_size;
      }
      emulation::SetSchedule(Schedule::kForward);
      EXPECT_EQ(RunAttention(qkv, c, GetParam()), want) << head_size;
      emulation::SetCopies(Copies::kLate);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, ScheduleTest, ::testing::ValuesIn(kDTypes),
                         [](const ::testing::TestParamInfo<DType>& info) {
                           return DTypeName(info.param);
                         });

}  // namespace
}  // namespace cuda
}  // namespace encoderd
