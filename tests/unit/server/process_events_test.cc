// Signals to this process, wakes and ticks, without a server.
#include "server/process_events.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "absl/time/clock.h"
#include "server/exit_codes.h"
#include "tests/support/patience.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(1);

void Send(int number) { kill(getpid(), number); }

// Each test gets the signals unblocked, and HUP ignored, as the server has it.
class ProcessEventsTest : public ::testing::Test {
 protected:
  ProcessEventsTest() : on_hang_up_(signal(SIGHUP, SIG_IGN)) {
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked_);
  }
  ~ProcessEventsTest() override {
    pthread_sigmask(SIG_SETMASK, &blocked_, nullptr);
    signal(SIGHUP, on_hang_up_);
  }

 private:
  void (*const on_hang_up_)(int);
  sigset_t blocked_;
};

using ProcessEventsDeathTest = ProcessEventsTest;

TEST_F(ProcessEventsTest, TermAndIntAskToStop) {
  ProcessEvents events;
  ASSERT_THAT(events.status(), IsOk());
  for (const int number : {SIGTERM, SIGINT}) {
    Send(number);
    EXPECT_EQ(events.Wait(kPatience), ProcessEvent::kStop) << number;
  }
  EXPECT_EQ(events.Wait(kTick), ProcessEvent::kTick);
}

TEST_F(ProcessEventsTest, AHangupIsHeardAlthoughItIsIgnored) {
  ProcessEvents events;
  Send(SIGHUP);
  EXPECT_EQ(events.Wait(kPatience), ProcessEvent::kHangUp);
  EXPECT_EQ(events.Wait(kTick), ProcessEvent::kTick);
}

TEST_F(ProcessEventsTest, AnotherThreadEndsAWaitWithoutATick) {
  ProcessEvents events;
  std::thread other([&events] { events.Wake(); });
  EXPECT_EQ(events.Wait(absl::InfiniteDuration()), ProcessEvent::kWake);
  other.join();
}

TEST_F(ProcessEventsTest, SeveralWakesAreOne) {
  ProcessEvents events;
  events.Wake();
  events.Wake();
  EXPECT_EQ(events.Wait(kPatience), ProcessEvent::kWake);
  EXPECT_EQ(events.Wait(kTick), ProcessEvent::kTick);
}

TEST_F(ProcessEventsTest, ASignalGoesBeforeAWakeAndLosesNone) {
  ProcessEvents events;
  events.Wake();
  Send(SIGTERM);
  EXPECT_EQ(events.Wait(kPatience), ProcessEvent::kStop);
  EXPECT_EQ(events.Wait(kPatience), ProcessEvent::kWake);
}

TEST_F(ProcessEventsTest, ThreadsThatAreStartedLaterHaveTheSignalsBlocked) {
  ProcessEvents events;
  sigset_t blocked;
  sigemptyset(&blocked);
  std::thread([&blocked] {
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  }).join();
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    EXPECT_EQ(sigismember(&blocked, number), 1) << number;
  }
}

TEST_F(ProcessEventsDeathTest, TheNextTermOrIntExits) {
  for (const int number : {SIGTERM, SIGINT}) {
    const auto leave = [number] {
      ProcessEvents events;
      Send(number);
      events.Wait(kPatience);
      events.NextStopExits();
      Send(number);
      absl::SleepFor(kPatience);
    };
    EXPECT_EXIT(leave(), ::testing::ExitedWithCode(kExitHurried), "^$");
  }
}

TEST_F(ProcessEventsDeathTest, ATermThatHasComeExits) {
  const auto leave = [] {
    ProcessEvents events;
    Send(SIGTERM);
    events.NextStopExits();
    absl::SleepFor(kPatience);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(kExitHurried), "^$");
}

TEST_F(ProcessEventsDeathTest, AHangupStaysBlocked) {
  const auto leave = [] {
    ProcessEvents events;
    signal(SIGHUP, SIG_DFL);
    events.NextStopExits();
    Send(SIGHUP);
    Send(SIGTERM);
    absl::SleepFor(kPatience);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(kExitHurried), "^$");
}

}  // namespace
}  // namespace encoderd
