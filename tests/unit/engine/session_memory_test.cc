// Scratch memory is taken once for max_batch_tokens and never grows.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "engine/encoder.h"
#include "tests/support/heap_bytes.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/test_devices.h"

namespace encoderd {
namespace {

RandomShape Shape() {
  RandomShape shape;
  shape.hidden = 128;
  shape.inner = 512;
  shape.positions = 256;
  return shape;
}

std::unique_ptr<const Encoder> BuildOn(const TestDevice& device) {
  return Encoder::Build(device.Open(), RandomConfig(Shape()),
                        RandomCheckpoint(Shape(), 1).get())
      .value();
}

class SessionMemoryTest : public ::testing::TestWithParam<TestDevice> {};

TEST_P(SessionMemoryTest, DoesNotGrowWhileServing) {
  const IdLimits limits = RandomLimits(Shape());
  const auto encoder = BuildOn(GetParam());
  const auto session = encoder->NewSession({512}).value();

  std::mt19937 random(1);
  const SequenceOutput output;
  std::vector<SequenceOutput> outputs;
  outputs.reserve(512);
  PackedBatch batch;
  ForwardResult result;
  const auto run = [&](int32_t sequences, int32_t length) {
    batch.Clear();
    for (int32_t i = 0; i < sequences; ++i)
      batch.Append(RandomSequence(length, limits, &random), limits);
    outputs.assign(sequences, output);
    ASSERT_TRUE(session->Run(batch, outputs, &result).ok());
  };
  const auto run_all = [&] {
    for (int32_t length = 1; length <= 256; length += 5)
      run(512 / length, length);
    run(2, 256);
  };
  run_all();  // the caller's own buffers and malloc's lists reach their size
  const int64_t before = HeapBytes();
  run_all();
  // malloc counts the small blocks that it keeps for reuse as held: a few
  // hundred bytes. The smallest buffer of a pass is a row of 512, for each of
  // up to 512 tokens.
  EXPECT_LE(HeapBytes() - before, 4096);
}

TEST_P(SessionMemoryTest, SaysHowMuchItHasTaken) {
  const auto encoder = BuildOn(GetParam());
  if (encoder->device().on_gpu()) GTEST_SKIP() << "in the card's memory";
  // Helper threads take theirs for the first Session.
  const auto first = encoder->NewSession({512}).value();
  const int64_t before = HeapBytes();
  const auto session = encoder->NewSession({512}).value();
  const int64_t taken = HeapBytes() - before;
  EXPECT_GT(session->scratch_bytes(), int64_t{512} * 128 * 2);
  EXPECT_GE(taken, session->scratch_bytes());
  // Buffers begin at a cache line, large ones of malloc at a page.
  EXPECT_LE(taken, session->scratch_bytes() + 65536);
}

INSTANTIATE_TEST_SUITE_P(Devices, SessionMemoryTest,
                         ::testing::ValuesIn(TestDevices()),
                         [](const ::testing::TestParamInfo<TestDevice>& info) {
                           return TestDeviceName(info.param);
                         });

}  // namespace
}  // namespace encoderd
