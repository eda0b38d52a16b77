#include "client/cpp/steady_time.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "tests/support/wall_clock.h"

namespace encoderd::client {
namespace {

constexpr int64_t kStep = 3600;                         // seconds
constexpr absl::Duration kPatience = absl::Minutes(1);  // much less than kStep

class SteadyTimeTest : public ::testing::Test {
 protected:
  SteadyTimeTest() { g_wall_clock_ahead = kStep; }
};

TEST_F(SteadyTimeTest, StartsAtTheWallTimeAndDoesNotFollowIt) {
  const absl::Time start = SteadyNow();
  EXPECT_LT(absl::AbsDuration(start - absl::Now()), kPatience);
  for (const int64_t ahead : {int64_t{0}, 2 * kStep, -kStep}) {
    g_wall_clock_ahead = ahead;
    EXPECT_GE(SteadyNow(), start);
    EXPECT_LT(SteadyNow() - start, kPatience);
  }
}

TEST_F(SteadyTimeTest, AWaitEndsWhenItsTimeIsUp) {
  absl::Mutex mu;
  SteadyCondition never;
  const absl::Time start = SteadyNow();
  {
    absl::MutexLock lock(&mu);
    EXPECT_FALSE(never.Await(
        &mu, [] { return false; }, absl::Milliseconds(10)));
    EXPECT_FALSE(never.Await(
        &mu, [] { return false; }, -absl::InfiniteDuration()));
  }
  EXPECT_GE(SteadyNow() - start, absl::Milliseconds(10));
  EXPECT_LT(SteadyNow() - start, kPatience);
  SteadyNotification silent;
  EXPECT_FALSE(silent.WaitForNotificationWithTimeout(absl::Milliseconds(10)));
  EXPECT_LT(SteadyNow() - start, kPatience);
}

TEST_F(SteadyTimeTest, AWaitEndsWhenItsConditionHolds) {
  absl::Mutex mu;
  SteadyCondition changed;
  bool done = false;
  std::thread other([&] {
    absl::MutexLock lock(&mu);
    done = true;
    changed.NotifyAll();
  });
  {
    absl::MutexLock lock(&mu);
    EXPECT_TRUE(changed.Await(
        &mu, [&] { return done; }, kPatience));
    EXPECT_TRUE(changed.Await(
        &mu, [&] { return done; }, absl::ZeroDuration()));
  }
  other.join();
}

TEST_F(SteadyTimeTest, ANotificationMayGoAsSoonAsItHasCome) {
  for (int i = 0; i < 1000; ++i) {
    auto notification = std::make_unique<SteadyNotification>();
    std::thread other([told = notification.get()] { told->Notify(); });
    if (i % 2 == 0) {
      notification->WaitForNotification();
    } else {
      while (!notification->HasBeenNotified()) std::this_thread::yield();
    }
    notification.reset();
    other.join();
  }
}

}  // namespace
}  // namespace encoderd::client
