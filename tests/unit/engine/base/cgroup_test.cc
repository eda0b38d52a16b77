// The CPU quota and the memory limit, from folders that look like a machine's.
#include "engine/base/cgroup.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

constexpr char kVersion1[] =
    "25 20 0:22 / /proc rw,relatime - proc proc rw\n"
    "31 30 0:27 ROOT /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup "
    "rw,cpuset\n"
    "32 30 0:28 ROOT /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:10 "
    "master:2 - cgroup cgroup rw,cpu,cpuacct\n"
    "33 30 0:29 ROOT /sys/fs/cgroup/memory rw,nosuid shared:11 - cgroup "
    "cgroup rw,memory\n";
constexpr char kVersion2[] =
    "32 30 0:28 ROOT /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 "
    "rw,nsdelegate\n";

// What a hybrid machine mounts besides: version 2, without these controllers.
constexpr char kUnified[] =
    "34 30 0:29 ROOT /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 "
    "rw,nsdelegate\n";

// What memory.limit_in_bytes has without a limit.
constexpr char kNoneOfVersion1[] = "9223372036854771712";

class CgroupTest : public ::testing::Test {
 protected:
  // A machine that mounts the group `root` and runs this process in `group`.
  void Mount(std::string mountinfo, const std::string& root,
             const std::string& groups) {
    for (size_t at; (at = mountinfo.find("ROOT")) != std::string::npos;) {
      mountinfo.replace(at, 4, root);
    }
    machine_.Write("proc/self/mountinfo", mountinfo);
    machine_.Write("proc/self/cgroup", groups);
  }
  void Quota1(const std::string& group, const std::string& quota) {
    const std::string folder = "sys/fs/cgroup/cpu,cpuacct" + group;
    machine_.Write(folder + "/cpu.cfs_quota_us", quota + "\n");
    machine_.Write(folder + "/cpu.cfs_period_us", "100000\n");
  }
  void Quota2(const std::string& group, const std::string& quota) {
    machine_.Write("sys/fs/cgroup" + group + "/cpu.max", quota + " 100000\n");
  }
  void Memory1(const std::string& group, const std::string& limit) {
    machine_.Write("sys/fs/cgroup/memory" + group + "/memory.limit_in_bytes",
                   limit + "\n");
  }
  void Memory2(const std::string& group, const std::string& limit) {
    machine_.Write("sys/fs/cgroup" + group + "/memory.max", limit + "\n");
  }
  int64_t Memory() const { return MemoryLimitBytes(machine_.path()); }
  int32_t Cores() const { return QuotaCores(machine_.path()); }

  const TempFolder machine_;
};

TEST_F(CgroupTest, AMachineWithoutGroupsHasNoLimit) {
  EXPECT_EQ(Cores(), kNoQuota);
  EXPECT_EQ(Memory(), kNoMemoryLimit);
}

TEST_F(CgroupTest, AQuotaOfVersion1IsThatOfTheMountedGroup) {
  // As a container sees it: the mount shows its own group only.
  Mount(kVersion1, "/docker/1f",
        "9:cpuset:/docker/1f\n"
        "4:cpu,cpuacct:/docker/1f\n0::/\n");
  Quota1("", "300000");
  EXPECT_EQ(Cores(), 3);
}

TEST_F(CgroupTest, AQuotaOfVersion1IsThatOfTheProcesssOwnGroup) {
  // As a service of the machine itself sees it: all groups are mounted.
  Mount(kVersion1, "/", "9:cpuset:/\n4:cpu,cpuacct:/system/encoderd\n0::/\n");
  Quota1("", "-1");
  Quota1("/system", "-1");
  Quota1("/system/encoderd", "200000");
  Quota1("/system/other", "100000");
  EXPECT_EQ(Cores(), 2);
}

TEST_F(CgroupTest, AQuotaOfVersion2IsThatOfTheProcesssOwnGroup) {
  Mount(kVersion2, "/", "0::/system/encoderd\n");
  Quota2("/system/encoderd", "400000");
  EXPECT_EQ(Cores(), 4);
}

TEST_F(CgroupTest, AContainerOfVersion2SeesItsQuotaAtTheTop) {
  Mount(kVersion2, "/", "0::/\n");
  Quota2("", "200000");
  EXPECT_EQ(Cores(), 2);
}

TEST_F(CgroupTest, TheLeastQuotaAboveAProcessHolds) {
  Mount(kVersion2, "/", "0::/pods/pod7/server\n");
  Quota2("/pods/pod7/server", "800000");
  Quota2("/pods/pod7", "200000");
  Quota2("/pods", "max");
  EXPECT_EQ(Cores(), 2);
  Mount(kVersion1, "/", "4:cpu,cpuacct:/pods/pod7/server\n");
  Quota1("/pods/pod7/server", "800000");
  Quota1("/pods/pod7", "500000");
  EXPECT_EQ(Cores(), 5);
}

TEST_F(CgroupTest, MaxAndMinusOneAreNoQuota) {
  Mount(kVersion2, "/", "0::/\n");
  Quota2("", "max");
  EXPECT_EQ(Cores(), kNoQuota);
  Mount(kVersion1, "/", "4:cpu,cpuacct:/\n");
  Quota1("", "-1");
  EXPECT_EQ(Cores(), kNoQuota);
}

TEST_F(CgroupTest, AQuotaIsRoundedAndAtLeastOneCore) {
  Mount(kVersion1, "/", "4:cpu,cpuacct:/\n");
  for (const auto& [quota, cores] : {std::pair<const char*, int32_t>{"1000", 1},
                                     {"149000", 1},
                                     {"150000", 2},
                                     {"350000", 4}}) {
    Quota1("", quota);
    EXPECT_EQ(Cores(), cores) << quota;
  }
}

TEST_F(CgroupTest, AGroupOutsideTheMountCountsAsTheMountedOne) {
  for (const char* group : {"/../other", "/kubepods/pod7", "/docker/1f0"}) {
    Mount(kVersion1, "/docker/1f",
          std::string("4:cpu,cpuacct:") + group + "\n");
    Quota1("", "200000");
    EXPECT_EQ(Cores(), 2) << group;
  }
}

TEST_F(CgroupTest, FilesThatSayNothingSetNoLimit) {
  Mount(kVersion1, "/", "4:cpu,cpuacct:/\n");
  Quota1("", "");
  EXPECT_EQ(Cores(), kNoQuota);
  machine_.Write("proc/self/mountinfo", "- \n\n36 25 - cgroup\ncgroup2");
  EXPECT_EQ(Cores(), kNoQuota);
  machine_.Write("proc/self/cgroup", "::\n:\n4");
  EXPECT_EQ(Cores(), kNoQuota);
}

TEST_F(CgroupTest, AMemoryLimitOfVersion1IsThatOfTheMemoryController) {
  // The two controllers may have the process in different groups.
  Mount(kVersion1, "/", "5:memory:/system/encoderd\n4:cpu,cpuacct:/other\n");
  Memory1("", kNoneOfVersion1);
  Memory1("/system", kNoneOfVersion1);
  Memory1("/system/encoderd", "2147483648");
  Memory1("/other", "1073741824");
  EXPECT_EQ(Memory(), int64_t{2} << 30);
}

TEST_F(CgroupTest, AContainersMemoryLimitIsThatOfTheMountedGroup) {
  Mount(kVersion1, "/docker/1f", "5:memory:/docker/1f\n");
  Memory1("", "536870912");
  EXPECT_EQ(Memory(), 512 << 20);
  Mount(kVersion2, "/", "0::/\n");
  Memory2("", "268435456");
  EXPECT_EQ(Memory(), 256 << 20);
}

TEST_F(CgroupTest, TheLeastMemoryLimitAboveAProcessHolds) {
  Mount(kVersion2, "/", "0::/pods/pod7/server\n");
  Memory2("/pods/pod7/server", "max");
  Memory2("/pods/pod7", "1000000");
  Memory2("/pods", "3000000");
  EXPECT_EQ(Memory(), 1000000);
  Mount(kVersion1, "/", "5:memory:/pods/pod7/server\n");
  Memory1("/pods/pod7/server", "5000000");
  Memory1("/pods/pod7", kNoneOfVersion1);
  Memory1("/pods", "4000000");
  EXPECT_EQ(Memory(), 4000000);
}

TEST_F(CgroupTest, AHybridMachineHasTheLimitsOfBothVersions) {
  Mount(absl::StrCat(kVersion1, kUnified), "/",
        "5:memory:/system/encoderd\n4:cpu,cpuacct:/system/encoderd\n"
        "0::/system.slice\n");
  Quota1("/system/encoderd", "300000");
  Memory1("/system/encoderd", "2147483648");
  EXPECT_EQ(Cores(), 3);
  EXPECT_EQ(Memory(), int64_t{2} << 30);
  // The process is in another group of version 2.
  Quota2("/unified/system/encoderd", "100000");
  Memory2("/unified/system/encoderd", "1000000");
  EXPECT_EQ(Cores(), 3);
  EXPECT_EQ(Memory(), int64_t{2} << 30);
  // A controller may be that of version 2; the least limit holds.
  Quota2("/unified/system.slice", "200000");
  Memory2("/unified/system.slice", "1073741824");
  EXPECT_EQ(Cores(), 2);
  EXPECT_EQ(Memory(), int64_t{1} << 30);
}

TEST_F(CgroupTest, MaxAndHugeNumbersAreNoMemoryLimit) {
  Mount(kVersion2, "/", "0::/\n");
  Memory2("", "max");
  EXPECT_EQ(Memory(), kNoMemoryLimit);
  Mount(kVersion1, "/", "5:memory:/\n");
  // With pages of 4 and 64 KiB, and of older kernels.
  for (const char* none : {kNoneOfVersion1, "9223372036854710272",
                           "9223372036854775807", "18446744073709551615"}) {
    Memory1("", none);
    EXPECT_EQ(Memory(), kNoMemoryLimit) << none;
  }
  Memory1("", "1099511627776");
  EXPECT_EQ(Memory(), int64_t{1} << 40);
}

TEST_F(CgroupTest, MemoryFilesThatSayNothingSetNoLimit) {
  Mount(kVersion1, "/", "5:memory:/\n");
  EXPECT_EQ(Memory(), kNoMemoryLimit);  // no file
  for (const char* garbage : {"", "0", "-1", "1e9", "7kB", "none"}) {
    Memory1("", garbage);
    EXPECT_EQ(Memory(), kNoMemoryLimit) << garbage;
  }
}

}  // namespace
}  // namespace encoderd
