// Kernels whose warps run in other orders, and whose copies land early or late,
// give the same bits: what one warp leaves in shared memory for another lies
// behind a barrier, and so does what it overwrites.
#include "engine/encoder.h"
#include "tests/support/cuda/emulation.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/cuda/test_card.h"

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
                       RandomLimits(shape), RandomCheckpoint(shape, 1).get());
    const auto session = (*encoder)->NewSession({256}).value();
    std::mt19937 random(1);
    PackedBatch batch;
    for (const int32_t length : {130, 65, 16, 1})
      batch.Append(RandomSequence(length, RandomLimits(shape), &random),
                   RandomLimits(shape));
    std::vector<SequenceOutput> outputs(4);
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

INSTANTIATE_TEST_SUITE_P(DTypes, ScheduleTest, ::testing::ValuesIn(kDTypes),
                         [](const ::testing::TestParamInfo<DType>& info) {
                           return DTypeName(info.param);
                         });

}  // namespace
}  // namespace cuda
}  // namespace encoderd
