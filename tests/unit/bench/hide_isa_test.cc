// What a program sees of this CPU that preloads libhide_isa.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <string>

#include "engine/device/cpu/cpu_info.h"

namespace encoderd {
namespace {

// Run by the test below, in another process.
TEST(HideIsaTest, DISABLED_ThisProcessSeesAvx2) {
  EXPECT_EQ(cpu::DetectIsa(), cpu::Isa::kAvx2);
  EXPECT_FALSE(cpu::HasIsa(cpu::Isa::kAvx512));
  EXPECT_FALSE(cpu::HasIsa(cpu::Isa::kAvx512Amx));
  EXPECT_FALSE(cpu::HasVnni());
}

TEST(HideIsaTest, AProgramThatPreloadsItSeesAvx2) {
  std::ifstream file("/proc/cpuinfo");
  const std::string flags(std::istreambuf_iterator<char>(file), {});
  if (flags.find(" cpuid_fault") == std::string::npos)
    GTEST_SKIP() << "CPUID cannot fault on this CPU";
  if (cpu::DetectIsa() <= cpu::Isa::kAvx2)
    GTEST_SKIP() << "this CPU has nothing to hide";
  const std::string self = "\"$(readlink /proc/$PPID/exe)\"";
  const std::string command =
      "LD_PRELOAD=" ENCODERD_HIDE_ISA " " + self +
      " --gtest_also_run_disabled_tests"
      " --gtest_filter=HideIsaTest.DISABLED_ThisProcessSeesAvx2";
  EXPECT_EQ(system(command.c_str()), 0);
}

}  // namespace
}  // namespace encoderd
