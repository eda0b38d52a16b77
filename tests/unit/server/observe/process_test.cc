#include "server/observe/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace encoderd {
namespace {

TEST(ProcessTest, ReadsTheKernelsLineWhateverTheProgramIsCalled) {
  ProcessFigures figures;
  ASSERT_TRUE(ParseStat(
      "7 (a) b (c) S 1 2 3 0 -1 4 10 0 0 0 150 50 0 0 20 0 9 0 5000 81920 30 "
      "18446744073709551615 1 1\n",
      {100, 4096, 1000}, &figures));
  EXPECT_EQ(figures.cpu_seconds, 2);
  EXPECT_EQ(figures.threads, 9);
  EXPECT_EQ(figures.start_time_seconds, 1050);
  EXPECT_EQ(figures.virtual_bytes, 81920);
  EXPECT_EQ(figures.resident_bytes, 30 * 4096);
}

TEST(ProcessTest, ALineOfAnotherFormChangesNothing) {
  for (const char* line : {"", "7 (a", "7 (a) S 1 2", "7 (a) S x y z"}) {
    ProcessFigures figures;
    figures.threads = 3;
    EXPECT_FALSE(ParseStat(line, {}, &figures)) << line;
    EXPECT_EQ(figures.threads, 3) << line;
  }
}

TEST(ProcessTest, FindsWhenTheMachineStarted) {
  EXPECT_EQ(ParseBootSeconds("cpu 1 2\nbtime 1700000000\nprocesses 3\n"),
            1700000000);
  EXPECT_EQ(ParseBootSeconds("cpu 1 2\n"), 0);
}

TEST(ProcessTest, KnowsThisProcess) {
  const ProcessFigures before = ReadProcess();
  EXPECT_GT(before.resident_bytes, 1 << 20);
  EXPECT_GE(before.virtual_bytes, before.resident_bytes);
  EXPECT_GT(before.max_fds, before.open_fds);
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  EXPECT_GT(before.start_time_seconds, now - 86400);
  EXPECT_LE(before.start_time_seconds, now + 1);

  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  std::thread other([&] {
    const ProcessFigures during = ReadProcess();
    EXPECT_EQ(during.open_fds, before.open_fds + 1);
    EXPECT_EQ(during.threads, before.threads + 1);
  });
  other.join();
  close(fd);
  EXPECT_EQ(ReadProcess().open_fds, before.open_fds);

  // The kernel counts in hundredths of a second.
  while (ReadProcess().cpu_seconds < before.cpu_seconds + 0.05) {
  }
}

}  // namespace
}  // namespace encoderd
