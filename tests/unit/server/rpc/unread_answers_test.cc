#include "server/rpc/unread_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
constexpr uint64_t kDeaf = 1;
constexpr uint64_t kOther = 2;

struct Call : AnsweringCall {
  void Cut() override { ++cuts; }
  int cuts = 0;
};

class UnreadAnswersTest : public ::testing::Test {
 protected:
  std::shared_ptr<Call> Answered(uint64_t caller, int64_t bytes,
                                 bool fits = true) {
    auto call = std::make_shared<Call>();
    EXPECT_EQ(unread_.Add(call, caller, bytes, now_).ok(), fits);
    return call;
  }

  UnreadAnswers unread_{1000};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(UnreadAnswersTest, CountsWhatWasGivenAndNotRead) {
  const auto one = Answered(kDeaf, 300);
  const auto two = Answered(kOther, 400);
  EXPECT_EQ(unread_.bytes(), 700);
  unread_.Remove(two.get(), 150, now_);
  EXPECT_EQ(unread_.bytes(), 550);
  unread_.RemoveAll(one.get());
  unread_.RemoveAll(one.get());
  EXPECT_EQ(unread_.bytes(), 250);
  unread_.RemoveAll(two.get());
  EXPECT_EQ(unread_.bytes(), 0);
  EXPECT_EQ(two.use_count(), 1);
}

TEST_F(UnreadAnswersTest, AboveTheLimitAnAnswerGoesOnlyToWhoHasNoOtherUnread) {
  const auto deaf = Answered(kDeaf, 900);
  const auto call = std::make_shared<Call>();
  EXPECT_THAT(unread_.Add(call, kDeaf, 101, now_),
              IsError(kExhausted, "900 bytes of answers are unread"));
  EXPECT_EQ(unread_.bytes(), 900);
  const auto first = Answered(kOther, 500);
  Answered(kOther, 1, /*fits=*/false);
  unread_.RemoveAll(first.get());
  const auto second = Answered(kOther, 500);
  EXPECT_EQ(deaf->cuts + first->cuts + second->cuts, 0);
}

TEST_F(UnreadAnswersTest, TheOldestAreCutWhereMemoryIsShort) {
  const auto oldest = Answered(kDeaf, 400);
  now_ += absl::Seconds(1);
  const auto older = Answered(kDeaf, 500);
  now_ += UnreadAnswers::kPatience;
  // Long unread, but there is room.
  const auto small = Answered(kOther, 100);
  EXPECT_EQ(oldest->cuts + older->cuts, 0);
  unread_.RemoveAll(small.get());
  // One of them is enough.
  const auto large = Answered(kOther, 450);
  EXPECT_EQ(oldest->cuts, 1);
  EXPECT_EQ(older->cuts, 0);
  EXPECT_EQ(unread_.calls_cut(), 1);
  EXPECT_EQ(unread_.bytes(), 1350);  // until gRPC is done with the call
  unread_.RemoveAll(oldest.get());
  EXPECT_EQ(unread_.bytes(), 950);
}

TEST_F(UnreadAnswersTest, WhoReadsIsNotCut) {
  const auto stream = std::make_shared<Call>();
  ASSERT_THAT(unread_.Add(stream, kDeaf, 500, now_), IsOk());
  const auto deaf = Answered(kDeaf, 400);
  now_ += UnreadAnswers::kPatience;
  unread_.Remove(stream.get(), 1, now_);
  const auto large = Answered(kOther, 900);
  EXPECT_EQ(deaf->cuts, 1);
  EXPECT_EQ(stream->cuts, 0);
  // Its next answer begins to wait when it is given.
  unread_.RemoveAll(large.get());
  unread_.RemoveAll(deaf.get());
  unread_.Remove(stream.get(), 499, now_);
  now_ += UnreadAnswers::kPatience;
  ASSERT_THAT(unread_.Add(stream, kDeaf, 500, now_), IsOk());
  Answered(kOther, 900);
  EXPECT_EQ(stream->cuts, 0);
}

}  // namespace
}  // namespace encoderd
