// Writing where nobody reads: a signal ends it; a reader gets all.
#include "client/cpp/encoderctl/stoppable_write.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "client/cpp/encoderctl/signals.h"

namespace encoderd::ctl {
namespace {

class StoppableWriteTest : public ::testing::Test {
 protected:
  ~StoppableWriteTest() override {
    for (const int descriptor : open_) close(descriptor);
    const StopOnSignal forgets;
  }

  // What is read from, then what is written to; -1 where there is none.
  struct Ends {
    int reader = -1;
    int writer = -1;
  };
  Ends MakePipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    open_.insert(open_.end(), {ends[0], ends[1]});
    return {ends[0], ends[1]};
  }
  Ends MakeTerminal() {
    const int leader = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (leader < 0) return {};
    open_.push_back(leader);
    EXPECT_EQ(grantpt(leader), 0);
    EXPECT_EQ(unlockpt(leader), 0);
    const int follower = open(ptsname(leader), O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_GE(follower, 0);
    open_.push_back(follower);
    const int own = ReopenTerminal(follower);
    EXPECT_NE(own, follower);
    open_.push_back(own);
    EXPECT_EQ(fcntl(follower, F_GETFL) & O_NONBLOCK, 0);
    return {leader, own};
  }

  std::vector<int> open_;
  const std::string much_ = std::string(1 << 20, 'x');  // for a buffer
};

TEST_F(StoppableWriteTest, ASignalEndsWhatNobodyReads) {
  const StopOnSignal stop;
  ASSERT_EQ(raise(SIGTERM), 0);
  for (const Ends& ends : {MakePipe(), MakeTerminal()}) {
    if (ends.writer < 0) continue;  // a system without pseudo-terminals
    const size_t wrote = WriteUntilStopped(ends.writer, much_);
    const int why = errno;
    EXPECT_LT(wrote, much_.size());
    EXPECT_EQ(why, EINTR);
    StoppableBuffer buffer(ends.writer);
    std::ostream out(&buffer);
    out << "stopped after " << much_.size();
    EXPECT_TRUE(out.bad());
  }
}

TEST_F(StoppableWriteTest, AReaderGetsAllOfIt) {
  for (const Ends& ends : {MakePipe(), MakeTerminal()}) {
    if (ends.writer < 0) continue;
    std::string found;
    std::thread reads([&] {
      std::string piece(1000, '\0');
      while (found.size() < much_.size() + 4) {
        const ssize_t got = read(ends.reader, piece.data(), piece.size());
        if (got <= 0) break;
        found.append(piece, 0, got);
      }
    });
    StoppableBuffer buffer(ends.writer);
    std::ostream out(&buffer);
    out << much_ << '!' << 123 << std::flush;
    EXPECT_TRUE(out.good());
    reads.join();
    EXPECT_EQ(found, much_ + "!123");
  }
}

TEST_F(StoppableWriteTest, OnlyATerminalIsOpenedAgain) {
  const Ends ends = MakePipe();
  EXPECT_EQ(ReopenTerminal(ends.writer), ends.writer);
  EXPECT_EQ(ReopenTerminal(-1), -1);
}

}  // namespace
}  // namespace encoderd::ctl
