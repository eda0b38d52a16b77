#include "server/base/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "server/base/steady_time.h"
#include "tests/support/patience.h"

namespace encoderd {
namespace {

// Threads that sleep until they get a permit, and in which order they got it.
class Sleepers {
 public:
  ~Sleepers() {
    {
      MutexLock lock(&mutex_);
      permits_ += static_cast<int>(threads_.size());
      available_.NotifyAll(&mutex_);
    }
    for (std::thread& thread : threads_) thread.join();
  }

  // Returns once the thread sleeps.
  void Start(int name) {
    const int before = asleep();
    threads_.emplace_back([this, name] { Sleep(name); });
    ASSERT_TRUE(Eventually([&] { return asleep() > before; }));
  }

  // Gives permits, a notification for each; returns once they are taken.
  void Wake(int count) {
    {
      MutexLock lock(&mutex_);
      permits_ += count;
      for (int i = 0; i < count; ++i) available_.NotifyOne(&mutex_);
    }
    AwaitTaken();
  }
  void WakeAll() {
    {
      MutexLock lock(&mutex_);
      permits_ += asleep_;
      available_.NotifyAll(&mutex_);
    }
    AwaitTaken();
  }

  Mutex* mutex() { return &mutex_; }
  CondVar* available() { return &available_; }
  std::vector<int> woken() {
    MutexLock lock(&mutex_);
    return woken_;
  }

 private:
  void Sleep(int name) {
    MutexLock lock(&mutex_);
    ++asleep_;
    while (permits_ == 0) available_.Wait(&mutex_);
    --permits_;
    --asleep_;
    woken_.push_back(name);
  }

  int asleep() {
    MutexLock lock(&mutex_);
    return asleep_;
  }

  void AwaitTaken() {
    EXPECT_TRUE(Eventually([this] {
      MutexLock lock(&mutex_);
      return permits_ == 0;
    })) << "a notification was lost";
  }

  Mutex mutex_;
  CondVar available_;
  int permits_ = 0;
  int asleep_ = 0;
  std::vector<int> woken_;
  std::vector<std::thread> threads_;
};

// A thread that waits only until a time.
class Impatient {
 public:
  Impatient(Sleepers* sleepers, absl::Time until)
      : sleepers_(*sleepers), thread_([this, until] {
          MutexLock lock(sleepers_.mutex());
          state_ = State::kWaits;
          sleepers_.available()->WaitUntil(sleepers_.mutex(), until);
          state_ = State::kLeft;
        }) {
    EXPECT_TRUE(Eventually([this] {
      MutexLock lock(sleepers_.mutex());
      return state_ != State::kStarts;
    }));
  }
  ~Impatient() { thread_.join(); }

  // With the mutex held.
  bool waits() const { return state_ == State::kWaits; }

 private:
  enum class State { kStarts, kWaits, kLeft };

  Sleepers& sleepers_;
  State state_ = State::kStarts;
  std::thread thread_;
};

TEST(CondVarTest, WakesTheLastToSleepFirst) {
  Sleepers sleepers;
  for (int name = 0; name < 4; ++name) sleepers.Start(name);
  for (int i = 0; i < 4; ++i) sleepers.Wake(1);
  EXPECT_EQ(sleepers.woken(), std::vector<int>({3, 2, 1, 0}));
}

TEST(CondVarTest, EachNotificationWakesAnotherThread) {
  Sleepers sleepers;
  for (int name = 0; name < 3; ++name) sleepers.Start(name);
  sleepers.Wake(2);
  sleepers.Wake(1);
}

TEST(CondVarTest, NotifyAllWakesAll) {
  Sleepers sleepers;
  for (int name = 0; name < 4; ++name) sleepers.Start(name);
  sleepers.WakeAll();
  EXPECT_EQ(sleepers.woken().size(), 4);
}

TEST(CondVarTest, NotifiesNobodyWhoseTimeIsUp) {
  Sleepers sleepers;
  sleepers.Start(0);
  {
    MutexLock lock(sleepers.mutex());
    sleepers.available()->WaitUntil(sleepers.mutex(), SteadyNow());
  }
  sleepers.Wake(1);
}

TEST(CondVarTest, WaiterWhoseTimeIsUpLeavesOthersInPlace) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    Sleepers sleepers;
    sleepers.Start(0);
    bool was_between = false;
    {
      const Impatient impatient(&sleepers, SteadyNow() + time);
      sleepers.Start(1);
      MutexLock lock(sleepers.mutex());
      was_between = impatient.waits();
    }
    sleepers.Wake(1);
    sleepers.Wake(1);
    EXPECT_EQ(sleepers.woken(), std::vector<int>({1, 0}));
    return was_between;
  }));
}

TEST(CondVarTest, WaiterMayBeNotifiedWhenItsTimeIsUp) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    Sleepers sleepers;
    sleepers.Start(0);
    bool waited = false;
    {
      const absl::Time until = SteadyNow() + time;
      const Impatient impatient(&sleepers, until);
      MutexLock lock(sleepers.mutex());
      waited = impatient.waits();
      absl::SleepFor(until + absl::Milliseconds(10) - SteadyNow());
      if (waited) sleepers.available()->NotifyOne(sleepers.mutex());
    }
    sleepers.Wake(1);
    EXPECT_EQ(sleepers.woken(), std::vector<int>({0}));
    return waited;
  }));
}

}  // namespace
}  // namespace encoderd
