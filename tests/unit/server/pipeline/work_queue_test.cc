#include "server/pipeline/work_queue.h"

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/server/pipeline/pipeline_harness.h"

namespace encoderd {
namespace {

absl::Time now;
absl::Time Now() { return now; }

class NoHost final : public CallHost {
 public:
  void CallFinished() override {}
};

class WorkQueueTest : public ::testing::Test {
 protected:
  // small_tokens: as in FairShares.
  explicit WorkQueueTest(int64_t small_tokens = 0)
      : queue_(std::make_shared<WorkQueue>(FairShares{10, 10, small_tokens},
                                           &observer_)) {
    now = absl::UnixEpoch();
  }

  // Calls of a batch each.
  void Queue(int calls) {
    for (int i = 0; i < calls; ++i) {
      auto call = std::make_shared<Call>(
          ++id_, TextRequest({"12345678"}),
          [](const absl::StatusOr<PipelineResult>&) {}, &host_, queue_, now);
      auto lengths = StartComputing(call.get());
      ASSERT_EQ(lengths, std::vector<int32_t>{10});
      queue_->Add(std::move(call), std::move(lengths), now);
    }
  }
  // What a thread of two does. True: it has a batch.
  bool Take(Work* work) {
    BatchLimits limits;
    limits.max_tokens = limits.min_tokens = 10;
    limits.sessions = 2;
    return queue_->Take(limits, Now, work) && work->taken.size() == 1;
  }
  absl::Duration Age() const { return queue_->OldestBatchAge(now); }

  RecordingObserver observer_;
  NoHost host_;
  const std::shared_ptr<WorkQueue> queue_;
  uint64_t id_ = 0;
};

TEST_F(WorkQueueTest, TheAgeIsThatOfTheOldestBatchInCompute) {
  Queue(4);
  now += absl::Seconds(50);
  EXPECT_EQ(Age(), absl::ZeroDuration());  // what waits is not in compute
  Work hangs;
  ASSERT_TRUE(Take(&hangs));
  EXPECT_EQ(Age(), absl::ZeroDuration());
  Work other;
  for (int batch = 1; batch <= 3; ++batch) {  // the other thread continues
    now += absl::Seconds(100);
    ASSERT_TRUE(Take(&other));
    EXPECT_EQ(Age(), batch * absl::Seconds(100));
    EXPECT_EQ(queue_->busy(), 2);
  }
  now += absl::Seconds(5);
  queue_->Stop();
  EXPECT_FALSE(Take(&hangs));  // its batch has ended
  EXPECT_EQ(queue_->busy(), 1);
  EXPECT_EQ(Age(), absl::Seconds(5));
  EXPECT_FALSE(Take(&other));
  EXPECT_EQ(queue_->busy(), 0);
  EXPECT_EQ(Age(), absl::ZeroDuration());
}

class SmallWorkTest : public WorkQueueTest {
 protected:
  SmallWorkTest() : WorkQueueTest(10) {}
};

// A thread that pauses for small requests is still in its batch.
TEST_F(SmallWorkTest, SmallRequestsInTheMiddleOfABatchLeaveItsAge) {
  Queue(2);
  Work batch;
  ASSERT_TRUE(Take(&batch));
  now += absl::Seconds(10);
  Work small;
  queue_->TakeSmall(10, now, &small);
  ASSERT_EQ(small.taken.size(), 1u);
  EXPECT_EQ(queue_->busy(), 1);
  EXPECT_EQ(Age(), absl::Seconds(10));
  now += absl::Seconds(5);
  EXPECT_EQ(Age(), absl::Seconds(15));
}

// A scrape reads the clock before it has the lock.
TEST_F(WorkQueueTest, TheAgeIsNeverBelowZero) {
  Queue(1);
  const absl::Time before = now;
  now += absl::Seconds(1);
  Work work;
  ASSERT_TRUE(Take(&work));
  EXPECT_EQ(queue_->OldestBatchAge(before), absl::ZeroDuration());
}

}  // namespace
}  // namespace encoderd
