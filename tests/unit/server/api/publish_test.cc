#include "server/api/publish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "engine/base/error.h"
#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

using absl::StatusCode;

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
    const absl::Status published = Publish(status);
    EXPECT_EQ(published.code(), StatusCode::kInternal);
    EXPECT_THAT(std::string(published.message()),
                ::testing::Not(::testing::HasSubstr("secret")));
    EXPECT_EQ(ReasonOf(published), "INTERNAL_FAULT");
    EXPECT_FALSE(GetErrorDetail(published)->metadata.at("error_id").empty());
  }
  EXPECT_NE(Publish(absl::InternalError("a")).message(),
            Publish(absl::InternalError("a")).message());
}

TEST(PublishTest, LeavesNamedErrorsAsTheyAre) {
  const absl::Status refused =
      MakeError(StatusCode::kInvalidArgument, "m", {"NO_INPUTS", {}, "inputs"});
  EXPECT_EQ(Publish(refused), refused);
  const absl::Status fault = MakeError(
      StatusCode::kInternal, "m", {"DEVICE_FAULT", {{"error_id", "7"}}, ""});
  EXPECT_EQ(Publish(fault), fault);
}

}  // namespace
}  // namespace encoderd
