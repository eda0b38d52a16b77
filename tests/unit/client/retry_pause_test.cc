// The pauses after which refused calls are made again, and streams opened.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/retry.h"
#include "client/cpp/steady_time.h"
#include "google/protobuf/util/time_util.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"

namespace encoderd::client {
namespace {

// A refusal as servers send it.
absl::Status Refusal(grpc::StatusCode code, const std::string& reason,
                     int64_t pause_ms) {
  google::rpc::Status status;
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  status.add_details()->PackFrom(info);
  google::rpc::RetryInfo retry;
  *retry.mutable_retry_delay() =
      google::protobuf::util::TimeUtil::MillisecondsToDuration(pause_ms);
  status.add_details()->PackFrom(retry);
  return FromGrpc({code, reason, status.SerializeAsString()}, 0);
}

// That `draw` gives all pauses from `least` to one and a half times that.
void ExpectSpread(absl::Duration least,
                  const std::function<absl::Duration()>& draw) {
  absl::Duration shortest = absl::InfiniteDuration();
  absl::Duration longest = absl::ZeroDuration();
  for (int i = 0; i < 200; ++i) {
    const absl::Duration pause = draw();
    shortest = std::min(shortest, pause);
    longest = std::max(longest, pause);
  }
  EXPECT_GE(shortest, least);
  EXPECT_LT(shortest, 1.2 * least);
  EXPECT_GT(longest, 1.3 * least);
  EXPECT_LE(longest, 1.5 * least);
}

TEST(RetryPauseTest, SpreadsThePauseThatTheServerAsksFor) {
  for (const absl::Status& refusal :
       {Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL", 500),
        Refusal(grpc::StatusCode::UNAVAILABLE, kLoading, 500)}) {
    ExpectSpread(absl::Milliseconds(500), [&] {
      return RetryPause(refusal, absl::InfiniteFuture()).value();
    });
  }
}

TEST(RetryPauseTest, IsNeverNothing) {
  const absl::Status refusal =
      Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL", 0);
  ExpectSpread(kLeastPause, [&] {
    return RetryPause(refusal, absl::InfiniteFuture()).value();
  });
}

TEST(RetryPauseTest, FitsTheDeadlineIfThePauseAskedForDoes) {
  const absl::Status refusal =
      Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL", 4'000'000);
  const absl::Time deadline = SteadyNow() + absl::Seconds(4400);
  absl::Duration longest = absl::ZeroDuration();
  for (int i = 0; i < 200; ++i) {
    const auto pause = RetryPause(refusal, deadline);
    ASSERT_TRUE(pause.has_value());
    EXPECT_GE(*pause, absl::Seconds(4000));
    longest = std::max(longest, *pause);
  }
  EXPECT_GT(longest, absl::Seconds(4100));
  EXPECT_LE(longest, absl::Seconds(4200));  // half remains for the attempt
  EXPECT_EQ(RetryPause(refusal, SteadyNow() + absl::Seconds(3999)),
            std::nullopt);
}

TEST(ReopenPauseTest, IsThatOfAFullServerOrTheBackoff) {
  const auto after = [](const absl::Status& status, int64_t backoff_ms) {
    return [status, backoff_ms] {
      return ReopenPause(status, absl::Milliseconds(backoff_ms));
    };
  };
  const absl::Status full =
      Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL", 500);
  ExpectSpread(absl::Milliseconds(500), after(full, 100));
  ExpectSpread(absl::Milliseconds(2000), after(full, 2000));
  // Another server may take the stream at once.
  const absl::Status leaves =
      Refusal(grpc::StatusCode::UNAVAILABLE, "DRAINING", 1000);
  ExpectSpread(absl::Milliseconds(100), after(leaves, 100));
  ExpectSpread(absl::Milliseconds(100),
               after(absl::UnavailableError("Socket closed"), 100));
}

}  // namespace
}  // namespace encoderd::client
