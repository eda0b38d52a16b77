#include "engine/device/cpu/weight_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

namespace encoderd {
namespace cpu {
namespace {

constexpr int64_t kUnit = WeightMemory::kAlignment;
constexpr int64_t kFloats = kUnit / 4;  // of one unit

uintptr_t Address(const float* data) {
  return reinterpret_cast<uintptr_t>(data);
}

// Flags of the mapping that holds an address, as the kernel lists them.
std::string FlagsOfMapping(uintptr_t address) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(maps, line)) {
    unsigned long first = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &end) == 2)
      inside = first <= address && address < end;
    if (inside && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST(WeightMemoryTest, WhatIsTakenLiesInOneBlockOneAfterTheOther) {
  WeightMemory memory;
  memory.Reserve(10 * kUnit);
  float* const first = memory.Take(3 * kUnit);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(Address(first) % (2 << 20), 0);
  EXPECT_EQ(memory.Take(7 * kUnit), first + 3 * kFloats);
}

TEST(WeightMemoryTest, WhatDoesNotFitIsSeparateAndTheRestRemains) {
  WeightMemory memory;
  memory.Reserve(4 * kUnit);
  float* const large = memory.Take(5 * kUnit);
  float* const small = memory.Take(4 * kUnit);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(Address(large) % kUnit, 0);
  EXPECT_EQ(Address(small) % (2 << 20), 0);
  std::fill_n(large, 5 * kFloats, 1.0f);  // ASan sees the bounds
  std::fill_n(small, 4 * kFloats, 2.0f);
  EXPECT_EQ(large[5 * kFloats - 1], 1.0f);
}

TEST(WeightMemoryTest, NothingNeedsToBeReserved) {
  WeightMemory memory;
  float* const first = memory.Take(kUnit);
  ASSERT_NE(first, nullptr);
  *first = 1;
  for (int i = 0; i < 10; ++i) ASSERT_NE(memory.Take(kUnit), nullptr);
  EXPECT_EQ(*first, 1);
}

TEST(WeightMemoryTest, AsksForHugePages) {
  std::ifstream supported("/sys/kernel/mm/transparent_hugepage/enabled");
  if (!supported) GTEST_SKIP() << "this kernel has no huge pages to give";
  WeightMemory memory;
  memory.Reserve(4 << 20);
  EXPECT_NE(FlagsOfMapping(Address(memory.Take(kUnit))).find(" hg "),
            std::string::npos);
}

TEST(WeightMemoryTest, WithoutMemoryThereIsNone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the program instead";
#endif
  constexpr int64_t kTooMuch = int64_t{1} << 60;
  WeightMemory memory;
  memory.Reserve(kTooMuch);
  EXPECT_EQ(memory.Take(kTooMuch), nullptr);
  EXPECT_NE(memory.Take(kUnit), nullptr);
}

}  // namespace
}  // namespace cpu
}  // namespace encoderd
