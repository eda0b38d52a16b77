// What the server does when the wall clock is set.
#include <gtest/gtest.h>
#include <time.h>

#include <memory>

#include "absl/time/clock.h"
#include "server/base/mutex.h"
#include "server/base/steady_time.h"
#include "server/security/secrets.h"
#include "server/trace/tracer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wall_clock.h"

namespace encoderd {
namespace {

constexpr int64_t kStep = 3600;                         // seconds
constexpr absl::Duration kPatience = absl::Minutes(1);  // much less than kStep
constexpr char kAlpha[] =
    "a 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\n";
constexpr char kBeta[] =
    "b f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753\n";

template <typename Condition>
bool Eventually(const Condition& condition) {
  const absl::Time until = SteadyNow() + kPatience;
  while (!condition() && SteadyNow() < until) {
    absl::SleepFor(absl::Milliseconds(2));
  }
  return condition();
}

class ClockStepTest : public ::testing::Test {
 protected:
  ClockStepTest() { g_wall_clock_ahead = kStep; }
};

TEST_F(ClockStepTest, TheWallClockOfThisProgramIsAhead) {
  EXPECT_GT(absl::ToTimeT(absl::Now()), time(nullptr) + kStep / 2);
}

TEST_F(ClockStepTest, SteadyTimeDoesNotFollow) {
  const absl::Time start = SteadyNow();
  for (const int64_t ahead : {int64_t{0}, 2 * kStep, -kStep}) {
    g_wall_clock_ahead = ahead;
    EXPECT_GE(SteadyNow(), start);
    EXPECT_LT(SteadyNow() - start, kPatience);
  }
}

TEST_F(ClockStepTest, AWaitEndsInTime) {
  Mutex mu;
  CondVar never;
  const absl::Time start = SteadyNow();
  {
    MutexLock lock(&mu);
    never.WaitUntil(&mu, start + absl::Milliseconds(10));
  }
  EXPECT_LT(SteadyNow() - start, kPatience);
}

TEST_F(ClockStepTest, ReplacedTokensAreRead) {
  const TempFolder folder;
  folder.Write("tokens", kAlpha);
  SecretFiles files;
  files.tokens = folder.Path("tokens");
  const auto secrets = Secrets::Open(files);
  ASSERT_THAT(secrets, IsOk());
  folder.Write("tokens", kBeta);
  EXPECT_TRUE(Eventually(
      [&] { return (*secrets)->tokens()->Find("alpha") == nullptr; }));
}

class LastSpan final : public Exporter {
 public:
  explicit LastSpan(CallSpan* last) : last_(*last) {}
  ExportResult Export(absl::Span<const CallSpan> spans,
                      absl::Duration) override {
    last_ = spans.back();
    return {};
  }
  void Cancel() override {}

 private:
  CallSpan& last_;
};

TEST_F(ClockStepTest, SpansAreExportedByTheWallClock) {
  CallSpan last;
  {
    TraceOptions options;
    options.interval = absl::Milliseconds(10);
    Tracer tracer(options, std::make_unique<LastSpan>(&last));
    CallSpan span;
    span.arrived = SteadyNow();
    span.answered = span.arrived + absl::Milliseconds(5);
    g_wall_clock_ahead = 3 * kStep;
    tracer.End(span);
    EXPECT_TRUE(Eventually([&] { return tracer.figures().exported == 1; }));
  }
  EXPECT_EQ(last.answered - last.arrived, absl::Milliseconds(5));
  EXPECT_LT(absl::AbsDuration(absl::Now() - last.arrived), kPatience);
  EXPECT_EQ(last.work.stages.computed, absl::InfinitePast());
}

}  // namespace
}  // namespace encoderd
