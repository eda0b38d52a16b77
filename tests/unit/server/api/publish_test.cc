#include "server/api/publish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/error.h"
#include "server/base/log.h"
#include "server/base/steady_time.h"
#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// What the log says of `status` as it becomes `*published`.
std::string LogOfPublishing(const absl::Status& status,
                            absl::Status* published) {
  ::testing::internal::CaptureStderr();
  *published = Publish(status);
  return ::testing::internal::GetCapturedStderr();
}

TEST(PublishTest, TellsWhenToComeBackOnlyWhereItHelps) {
  const auto delay = [](StatusCode code, const char* reason) {
    return RetryDelay(MakeError(code, "m", {reason, {}, ""}));
  };
  EXPECT_EQ(delay(StatusCode::kResourceExhausted, "QUEUE_FULL"),
            absl::Milliseconds(500));
  EXPECT_EQ(RetryDelay(WithRetryPause(MakeError(StatusCode::kResourceExhausted,
                                                "m", {"QUEUE_FULL", {}, ""}),
                                      absl::Milliseconds(1250))),
            absl::Milliseconds(1250));
  EXPECT_EQ(delay(StatusCode::kUnavailable, "LOADING"),
            absl::Milliseconds(500));
  EXPECT_EQ(delay(StatusCode::kUnavailable, "DRAINING"), absl::Seconds(1));
  EXPECT_EQ(delay(StatusCode::kInvalidArgument, "INPUT_TOO_LONG"),
            std::nullopt);
  EXPECT_EQ(delay(StatusCode::kDeadlineExceeded, "EXPIRED_IN_QUEUE"),
            std::nullopt);
}

TEST(PublishTest, HidesWhatIsInternalBehindAnErrorId) {
  for (const absl::Status& status :
       {absl::InternalError("/secret/path"), absl::UnknownError("secret"),
        absl::InvalidArgumentError("secret, and without a reason")}) {
    absl::Status published;
    const std::string log = LogOfPublishing(status, &published);
    EXPECT_EQ(published.code(), StatusCode::kInternal);
    EXPECT_THAT(std::string(published.message()), Not(HasSubstr("secret")));
    EXPECT_EQ(ReasonOf(published), "INTERNAL_FAULT");
    const std::string id = GetErrorDetail(published)->metadata.at("error_id");
    EXPECT_FALSE(id.empty());
    EXPECT_THAT(log, AllOf(HasSubstr(absl::StrCat(
                               " level=error event=internal_error error_id=",
                               id, " status=")),
                           HasSubstr(std::string(status.message()))));
  }
  EXPECT_NE(Publish(absl::InternalError("a")).message(),
            Publish(absl::InternalError("a")).message());
}

TEST(PublishTest, LeavesNamedErrorsAsTheyAre) {
  const absl::Status refused =
      MakeError(StatusCode::kInvalidArgument, "m", {"NO_INPUTS", {}, "inputs"});
  absl::Status published;
  EXPECT_EQ(LogOfPublishing(refused, &published), "");
  EXPECT_EQ(published, refused);
  const absl::Status fault = MakeError(
      StatusCode::kInternal, "m", {"DEVICE_FAULT", {{"error_id", "7"}}, ""});
  EXPECT_THAT(LogOfPublishing(fault, &published),
              EndsWith(" level=error event=call_failed error_id=7 "
                       "reason=DEVICE_FAULT\n"));
  EXPECT_EQ(published, fault);
}

// Publishes `status` far more often than may be logged at once. True: as many
// lines were written as the time allowed.
bool FloodIsBounded(const absl::Status& status) {
  const absl::Time start = SteadyNow();
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 500; ++i) Publish(status).IgnoreError();
  const std::string log = ::testing::internal::GetCapturedStderr();
  const int64_t most =
      kFaultLinesAtOnce + (SteadyNow() - start) / kFaultLineInterval + 1;
  const int64_t lines = std::count(log.begin(), log.end(), '\n');
  std::cerr << lines << " lines, at most " << most << "\n";
  return lines >= kFaultLinesAtOnce && lines <= most;
}

// Exit code 0: floods of both events are bounded, the first does not hide the
// second, and a later line tells of what was left out.
[[noreturn]] void PublishFloods() {
  const absl::Status named = MakeError(
      StatusCode::kInternal, "m", {"DEVICE_FAULT", {{"error_id", "7"}}, ""});
  const bool right =
      FloodIsBounded(named) && FloodIsBounded(absl::InternalError("not named"));
  std::string next;
  while (next.empty()) {
    absl::SleepFor(kFaultLineInterval);
    absl::Status published;
    next = LogOfPublishing(named, &published);
  }
  std::cerr << next;
  std::exit(right && absl::StrContains(next, " left_out=") ? 0 : 1);
}

// In a separate process, since all of a process share the limit.
TEST(PublishDeathTest, AFloodOfFaultsDoesNotFillTheDisk) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(PublishFloods(), ::testing::ExitedWithCode(0), "left_out=");
}

}  // namespace
}  // namespace encoderd
