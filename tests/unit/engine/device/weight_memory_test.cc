#include "engine/device/cpu/weight_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace encoderd {
namespace cpu {
namespace {

constexpr int64_t kUnit = WeightMemory::kAlignment;

TEST(WeightMemoryTest, WhatIsTakenLiesInOnePieceOneAfterTheOther) {
  WeightMemory memory(10 * kUnit);
  const std::shared_ptr<float> first = memory.Take(3 * kUnit);
  const std::shared_ptr<float> second = memory.Take(7 * kUnit);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.get()) % (2 << 20), 0);
  EXPECT_EQ(second.get(), first.get() + 3 * kUnit / 4);
}

TEST(WeightMemoryTest, WhatDoesNotFitIsSeparateAndTheRestRemains) {
  for (WeightMemory memory : {WeightMemory(4 * kUnit), WeightMemory()}) {
    const std::shared_ptr<float> large = memory.Take(5 * kUnit);
    const std::shared_ptr<float> small = memory.Take(4 * kUnit);
    ASSERT_NE(large, nullptr);
    ASSERT_NE(small, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(large.get()) % kUnit, 0);
    std::fill_n(large.get(), 5 * kUnit / 4, 1.0f);  // ASan sees the bounds
    std::fill_n(small.get(), 4 * kUnit / 4, 2.0f);
    EXPECT_EQ(large.get()[5 * kUnit / 4 - 1], 1.0f);
  }
}

TEST(WeightMemoryTest, APartOutlivesTheWhole) {
  std::shared_ptr<float> part;
  {
    WeightMemory memory(2 * kUnit);
    memory.Take(kUnit);
    part = memory.Take(kUnit);
  }
  std::fill_n(part.get(), kUnit / 4, 1.0f);
  EXPECT_EQ(part.get()[kUnit / 4 - 1], 1.0f);
}

TEST(WeightMemoryTest, WithoutMemoryThereIsNoPart) {
  constexpr int64_t kTooMuch = int64_t{1} << 60;
  EXPECT_EQ(WeightMemory(kTooMuch).Take(kTooMuch), nullptr);
  EXPECT_NE(WeightMemory(kTooMuch).Take(kUnit), nullptr);
}

}  // namespace
}  // namespace cpu
}  // namespace encoderd
