// The CPU's name and its cores, from folders that look like a machine's.
#include "engine/device/cpu/cpu_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/temp_folder.h"

namespace encoderd::cpu {
namespace {

class CpuInfoTest : public ::testing::Test {
 protected:
  std::string NameOf(const std::string& cpuinfo) {
    machine_.Write("proc/cpuinfo", cpuinfo);
    return CpuModelName(machine_.path());
  }
  // As an arm64 kernel describes a core.
  std::string NameOfArm(const std::string& implementer,
                        const std::string& part) {
    return NameOf(
        "processor\t: 0\n"
        "BogoMIPS\t: 243.75\n"
        "Features\t: fp asimd evtstrm aes\n"
        "CPU implementer\t: " +
        implementer +
        "\n"
        "CPU architecture: 8\n"
        "CPU variant\t: 0x3\n"
        "CPU part\t: " +
        part +
        "\n"
        "CPU revision\t: 1\n\n");
  }
  void Siblings(int32_t cpu, const std::string& list) {
    machine_.Write("sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list",
                   list + "\n");
  }

  const TempFolder machine_;
};

TEST_F(CpuInfoTest, TheNameIsTheOneThatTheSystemHas) {
  EXPECT_EQ(NameOf("processor\t: 0\nmodel name\t: AMD EPYC 9654\nflags: a\n"),
            "AMD EPYC 9654");
}

TEST_F(CpuInfoTest, AnArmCoreIsNamedByImplementerAndPart) {
  EXPECT_EQ(NameOfArm("0x41", "0xd0c"), "Arm Neoverse-N1");
  EXPECT_EQ(NameOfArm("0x41", "0xd40"), "Arm Neoverse-V1");
  EXPECT_EQ(NameOfArm("0x6d", "0xd49"), "Microsoft Azure Cobalt 100");
  EXPECT_EQ(NameOfArm("0xc0", "0xac3"), "AmpereOne");
}

TEST_F(CpuInfoTest, AppleSaysNoPartToAVirtualMachine) {
  EXPECT_EQ(NameOfArm("0x61", "0x000"), "Apple silicon");
  EXPECT_EQ(NameOfArm("0x61", "0x023"), "Apple silicon");
}

TEST_F(CpuInfoTest, AnArmCoreThatIsNotListedKeepsItsNumbers) {
  EXPECT_EQ(NameOfArm("0x41", "0xfff"),
            "arm64 CPU, implementer 0x41, part 0xfff");
}

TEST_F(CpuInfoTest, ACpuThatSaysNothingIsUnknown) {
  EXPECT_EQ(CpuModelName(machine_.path()), "unknown CPU");
  EXPECT_EQ(NameOf("CPU implementer\t: 0x41\n"), "unknown CPU");
  EXPECT_EQ(NameOf("CPU implementer\t:\nCPU part\nmodel name\n"),
            "unknown CPU");
  EXPECT_EQ(NameOf("CPU implementer\t: Arm\nCPU part\t: V1\n"),
            "arm64 CPU, implementer Arm, part V1");
}

TEST_F(CpuInfoTest, HyperThreadsOfACoreCountOnce) {
  Siblings(0, "0,2");
  Siblings(1, "1,3");
  Siblings(2, "0,2");
  Siblings(3, "1,3");
  EXPECT_EQ(PhysicalCores({0, 1, 2, 3}, machine_.path()), 2);
  EXPECT_EQ(PhysicalCores({2, 3}, machine_.path()), 2);
  EXPECT_EQ(PhysicalCores({1, 3}, machine_.path()), 1);
}

TEST_F(CpuInfoTest, CoresOfTwoClustersAllCount) {
  // Each cluster numbers its cores from 0, so their numbers are no identity.
  for (int32_t cpu = 0; cpu < 8; ++cpu) {
    Siblings(cpu, std::to_string(cpu));
    machine_.Write("sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/core_id",
                   std::to_string(cpu % 4) + "\n");
  }
  EXPECT_EQ(PhysicalCores({0, 1, 2, 3, 4, 5, 6, 7}, machine_.path()), 8);
}

TEST_F(CpuInfoTest, WithoutATopologyEveryCpuIsACore) {
  EXPECT_EQ(PhysicalCores({0, 1, 5}, machine_.path()), 3);
  EXPECT_EQ(PhysicalCores({}, machine_.path()), 0);
}

TEST(AllowedCpusTest, FindsThoseBeyondTheBitsOfOneMask) {
  const auto get = [](pid_t, size_t bytes, cpu_set_t* mask) {
    if (8 * bytes < 5000) {
      errno = EINVAL;
      return -1;
    }
    CPU_ZERO_S(bytes, mask);
    for (const int cpu : {0, 1023, 1024, 4999}) CPU_SET_S(cpu, bytes, mask);
    return 0;
  };
  EXPECT_THAT(AllowedCpus(get), testing::ElementsAre(0, 1023, 1024, 4999));
}

TEST(AllowedCpusTest, AreNoneWhereTheSystemDoesNotSay) {
  for (const int error : {EINVAL, EPERM}) {
    EXPECT_THAT(AllowedCpus([&](pid_t, size_t, cpu_set_t*) {
                  errno = error;
                  return -1;
                }),
                testing::IsEmpty());
  }
}

TEST(AllowedCpusTest, ThisMachineHasSome) {
  EXPECT_THAT(AllowedCpus(), testing::Not(testing::IsEmpty()));
}

TEST_F(CpuInfoTest, ThisMachineHasANameAndACore) {
  EXPECT_FALSE(CpuModelName().empty());
  EXPECT_GE(AvailableCores(), 1);
}

TEST_F(CpuInfoTest, TheBaselineIsNamedByItsInstructions) {
#if defined(__aarch64__)
  EXPECT_STREQ(IsaName(Isa::kPortable), "neon");
  EXPECT_EQ(DetectIsa(), Isa::kPortable);
#else
  EXPECT_STREQ(IsaName(Isa::kPortable), "portable");
#endif
}

TEST_F(CpuInfoTest, AmxIsNeverChosenUnasked) {
  EXPECT_LT(DetectIsa(), Isa::kAvx512Amx);
  for (const Isa isa : kIsas) {
    if (isa == Isa::kAvx512Amx) continue;
    EXPECT_EQ(HasIsa(isa), isa <= DetectIsa());
  }
}

// Linux lists what it has switched on.
TEST_F(CpuInfoTest, AmxIsFoundOnlyWhereLinuxListsIt) {
  std::ifstream file("/proc/cpuinfo");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const bool listed = text.find(" amx_bf16") != std::string::npos;
  EXPECT_TRUE(listed || !HasIsa(Isa::kAvx512Amx));
}

TEST(HasFastBf16Test, IsTrueOnlyWithTheInstructionsAndNotOnIntel) {
  EXPECT_FALSE(HasFastBf16(Isa::kAvx512));
  if (!HasFastBf16(DetectIsa())) return;
  EXPECT_GE(DetectIsa(), Isa::kAvx512Bf16);
  EXPECT_EQ(CpuModelName().find("Intel"), std::string::npos);
}

}  // namespace
}  // namespace encoderd::cpu
