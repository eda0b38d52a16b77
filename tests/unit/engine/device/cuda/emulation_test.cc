// The emulation itself: fragments as PTX documents them, and what it catches.
#include "tests/support/cuda/emulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "engine/device/cuda/kernels/primitives.h"
#include "engine/device/cuda/kernels/warp.h"
#include "engine/io/half_floats.h"

namespace encoderd {
namespace cuda {
namespace {

void OneWarp(int32_t shared_bytes, const std::function<void()>& body) {
  ASSERT_EQ(emulation::Run({1, 1, 32, shared_bytes}, body), 0);
}

TEST(EmulationTest, MultipliesByTheDocumentedFragments) {
  // a[r][k] = 1 at r = 3, k = 13 alone; so d[3][n] is b[13][n] for every n.
  std::vector<float> d(16 * 8, -1.0f);
  OneWarp(0, [&] {
    const int32_t lane = ThreadIndex(), group = lane / 4, member = lane % 4;
    const auto half = [](float value) -> uint32_t {
      return emulation::ToHalf(value);
    };
    // Row 3 is group 3's; column 13 is member 2's second of the upper half.
    uint32_t a[4] = {0, 0, 0, 0};
    if (group == 3 && member == 2) a[2] = half(1.0f) << 16;
    // b[k][n] = 100 n + k: lane holds k = 2 member (+1), + 8, n = group.
    uint32_t b[2];
    for (int i = 0; i < 2; ++i) {
      const int k = 2 * member + 8 * i;
      b[i] = half(100.0f * group + k) | half(100.0f * group + k + 1) << 16;
    }
    float mine[4] = {0, 0, 0, 0};
    MultiplyAdd(mine, a, b[0], b[1], Half());
    for (int i = 0; i < 4; ++i)
      d[(group + i / 2 * 8) * 8 + member * 2 + i % 2] = mine[i];
  });
  for (int r = 0; r < 16; ++r) {
    for (int n = 0; n < 8; ++n)
      EXPECT_EQ(d[r * 8 + n], r == 3 ? 100.0f * n + 13 : 0.0f) << r << "," << n;
  }
}

TEST(EmulationTest, LoadsMatricesPlainAndTransposed) {
  OneWarp(4 * 8 * 16, [] {
    auto* shared = reinterpret_cast<uint16_t*>(SharedMemory());
    const int32_t lane = ThreadIndex();
    for (int32_t i = lane; i < 256; i += 32)
      shared[i] = static_cast<uint16_t>(i);  // matrix i/64, row, column
    Barrier();
    uint32_t r[4], t[4];
    LoadMatrix4(shared + lane * 8, r);
    LoadMatrix4Transposed(shared + lane * 8, t);
    for (uint32_t m = 0; m < 4; ++m) {
      const uint32_t row = lane / 4, column = lane % 4 * 2;
      const uint32_t plain = m * 64 + row * 8 + column;
      const uint32_t turned = m * 64 + column * 8 + row;
      emulation::Check(r[m] == (plain | (plain + 1) << 16), "plain");
      emulation::Check(t[m] == (turned | (turned + 8) << 16), "transposed");
    }
  });
}

TEST(EmulationTest, SumsOverAWarpAndABlock) {
  std::vector<float> sums(128);
  ASSERT_EQ(emulation::Run({1, 1, 128, 128},
                           [&] {
                             sums[ThreadIndex()] = BlockSum(
                                 static_cast<float>(ThreadIndex()),
                                 reinterpret_cast<float*>(SharedMemory()));
                           }),
            0);
  for (const float sum : sums) EXPECT_EQ(sum, 127.0f * 64);
}

TEST(EmulationTest, LandsACopyOnlyWhenItIsWaitedFor) {
  alignas(16) const char from[16] = "fifteen letters";
  OneWarp(32 * 16, [&] {
    char* mine = SharedMemory() + 16 * ThreadIndex();
    CopyAsync16(mine, from, true);
    CopyCommit();
    emulation::Check(mine[0] == '\xff', "landed too early");
    CopyWait<0>();
    emulation::Check(mine[0] == 'f', "did not land");
  });
}

TEST(EmulationTest, BringsAWarpTogetherAtItsBarrierAndNoOther) {
  for (const auto schedule :
       {emulation::Schedule::kForward, emulation::Schedule::kBackward}) {
    emulation::SetSchedule(schedule);
    EXPECT_EQ(emulation::Run({1, 1, 64, 64 * 4},
                             [] {
                               auto* words =
                                   reinterpret_cast<int*>(SharedMemory());
                               if (ThreadIndex() >= 32) return;
                               words[ThreadIndex()] = ThreadIndex();
                               WarpBarrier();
                               emulation::Check(words[31 - ThreadIndex()] ==
                                                    31 - ThreadIndex(),
                                                "a lane was not here");
                             }),
              0);
  }
  emulation::SetSchedule(emulation::Schedule::kForward);
}

// What the lanes of two warps copied, read by every warp; `meet` comes between.
void ReadCopies(void (*meet)()) {
  alignas(16) static const char from[16] = {};
  emulation::Run({1, 1, 64, 64 * 16}, [&] {
    CopyAsync16(SharedMemory() + 16 * ThreadIndex(), from, true);
    CopyCommit();
    CopyWait<0>();
    meet();
    uint32_t r[4];
    const int32_t lane = ThreadIndex() % 32;
    LoadMatrix4(SharedMemory() + 16 * (ThreadIndex() / 32 * 32 + lane), r);
    LoadMatrix4(SharedMemory() + 16 * lane, r);
  });
}

TEST(EmulationTest, ShowsCopiesToAllAfterABarrier) {
  ReadCopies([] { Barrier(); });
}

TEST(EmulationTest, ShowsAMissingBarrierByAnotherSchedule) {
  // Thread 0 writes what all read, without a barrier between: a race.
  const auto racing = [](emulation::Schedule schedule) {
    emulation::SetSchedule(schedule);
    std::vector<int> seen(64);
    EXPECT_EQ(emulation::Run({1, 1, 64, 4},
                             [&] {
                               if (ThreadIndex() == 0) SharedMemory()[0] = 1;
                               seen[ThreadIndex()] = SharedMemory()[0];
                             }),
              0);
    emulation::SetSchedule(emulation::Schedule::kForward);
    return seen;
  };
  EXPECT_NE(racing(emulation::Schedule::kForward),
            racing(emulation::Schedule::kBackward));
}

TEST(EmulationTest, RefusesALaunchThatACardRefuses) {
  const auto nothing = [] {};
  EXPECT_EQ(emulation::Run({0, 1, 32, 0}, nothing), 9);
  EXPECT_EQ(emulation::Run({1, 70000, 32, 0}, nothing), 9);
  EXPECT_EQ(emulation::Run({1, 1, 2048, 0}, nothing), 9);
  EXPECT_EQ(emulation::Run({1, 1, 32, 50000}, nothing), 9);
}

using EmulationDeathTest = ::testing::Test;

TEST(EmulationDeathTest, EndsTheProcessOnABarrierThatSomeDoNotReach) {
  EXPECT_DEATH(emulation::Run({1, 1, 64, 0},
                              [] {
                                if (ThreadIndex() < 40) Barrier();
                              }),
               "a barrier that some threads do not come to");
}

void StoresAtOnce(float* to) { StoreVector8(Vector8<float>(), to); }
void AwaitsFirst(float* to) {
  AwaitEarlierKernels();
  StoreVector8(Vector8<float>(), to);
}

TEST(EmulationDeathTest, EndsTheProcessWhereAKernelDoesNotAwaitEarlierOnes) {
  alignas(32) float memory[8];
  LaunchShape shape;
  shape.threads = 32;
  EXPECT_EQ(Launch(AwaitsFirst, shape, nullptr, &memory[0]), 0);
  EXPECT_DEATH(Launch(StoresAtOnce, shape, nullptr, &memory[0]),
               "did not call AwaitEarlierKernels first");
}

TEST(EmulationDeathTest, EndsTheProcessWhereAWarpDiverges) {
  EXPECT_DEATH(emulation::Run({1, 1, 32, 0},
                              [] {
                                if (ThreadIndex() < 16) {
                                  ShuffleXor(1.0f, 1);
                                } else {
                                  ShuffleFrom(1.0f, 0);
                                }
                              }),
               "different things");
}

TEST(EmulationDeathTest, EndsTheProcessOnAWarpBarrierThatALaneMisses) {
  EXPECT_DEATH(emulation::Run({1, 1, 32, 0},
                              [] {
                                if (ThreadIndex() != 7) WarpBarrier();
                              }),
               "lanes do different things|lanes of its warp that do not come");
  EXPECT_DEATH(emulation::Run({1, 1, 32, 0},
                              [] {
                                if (ThreadIndex() != 7) WarpBarrier();
                                Barrier();
                              }),
               "lanes do different things|lanes of its warp that do not come");
}

TEST(EmulationDeathTest, EndsTheProcessWhereACopyIsReadBeforeABarrier) {
  EXPECT_DEATH(ReadCopies([] {}), "a copy that this thread does not see yet");
  // The other warp's are seen after a barrier of the block alone.
  EXPECT_DEATH(ReadCopies([] { WarpBarrier(); }),
               "LoadMatrix4 of a copy with no barrier.*\n.*thread (3[2-9]|[45]"
               ".|6[0-3]):");
}

TEST(EmulationDeathTest, EndsTheProcessOnAMisalignedAddress) {
  alignas(16) static const float values[12] = {};
  EXPECT_DEATH(emulation::Run({1, 1, 32, 0}, [] { LoadVector8(values + 1); }),
               "not aligned to 16");
  alignas(16) static uint16_t to[12];
  EXPECT_DEATH(
      emulation::Run({1, 1, 32, 0},
                     [] { StoreVector4(Vector4<uint16_t>(), to + 2); }),
      "not aligned to 8");
}

TEST(EmulationDeathTest, EndsTheProcessOnACopyNeverWaitedFor) {
  alignas(16) static const char from[16] = {};
  EXPECT_DEATH(
      emulation::Run(
          {1, 1, 32, 512},
          [] { CopyAsync16(SharedMemory() + 16 * ThreadIndex(), from, true); }),
      "copies in flight");
}

TEST(NarrowTest, RoundsEveryHalfToItselfAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = emulation::FromHalf(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(NarrowToHalf(value), bits) << value;
    ASSERT_EQ(emulation::ToHalf(value), bits) << value;
  }
  EXPECT_EQ(NarrowToHalf(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(NarrowToHalf(1.0f + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(NarrowToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(NarrowToHalf(65519.9f), 0x7bff);
  EXPECT_EQ(NarrowToHalf(0x1p-25f), 0);
  EXPECT_EQ(NarrowToHalf(0x1.8p-25f), 1);
  EXPECT_EQ(NarrowToBf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(NarrowToBf16(1.0f + 3 * 0x1p-8f), 0x3f82);
}

TEST(NarrowTest, AgreesOnRandomBitsWithTheEmulation) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000000; ++i) {
    const float value = emulation::FloatOfBits(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(NarrowToHalf(value), emulation::ToHalf(value)) << value;
    ASSERT_EQ(NarrowToBf16(value), emulation::ToBf16(value)) << value;
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
