// The Sessions of a server, over a model that computes nothing.
#include "server/sessions.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/fake_model.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

FakeModelOptions ThreeSessions(bool pauses) {
  FakeModelOptions options;
  options.sessions = 3;
  options.pauses = pauses;
  return options;
}

TEST(NewSessionsTest, WarmsUpEverySessionOfAGpu) {
  FakeModel model(ThreeSessions(/*pauses=*/false));
  const auto serving = NewSessions(ServerConfig(), model);
  ASSERT_THAT(serving, IsOk());
  EXPECT_EQ(serving->sessions.size(), 3);
  EXPECT_TRUE(serving->pause_sessions.empty());
  std::vector<int> warmed;
  for (const FakeDevice::Batch& batch : model.device().log())
    warmed.push_back(batch.session);
  EXPECT_EQ(warmed, (std::vector<int>{0, 1, 2}));
}

TEST(NewSessionsTest, RunsOnePassWherePassesCanPause) {
  FakeModel model(ThreeSessions(/*pauses=*/true));
  const auto serving = NewSessions(ServerConfig(), model);
  ASSERT_THAT(serving, IsOk());
  EXPECT_EQ(serving->sessions.size(), 3);
  EXPECT_EQ(serving->pause_sessions.size(), 3);
  EXPECT_EQ(model.device().log_size(), 1);
}

TEST(NewSessionsTest, ReportsADeviceLostDuringWarmUp) {
  FakeModelOptions options = ThreeSessions(/*pauses=*/false);
  options.lost_after = 1;
  const FakeModel model(options);
  EXPECT_THAT(NewSessions(ServerConfig(), model),
              IsError(absl::StatusCode::kUnavailable, "the device is lost"));
}

TEST(NewSessionsTest, ReportsValuesThatAreNotFinite) {
  FakeModel model(ThreeSessions(/*pauses=*/true));
  model.device().NanToken(0);
  EXPECT_THAT(NewSessions(ServerConfig(), model),
              IsError(absl::StatusCode::kDataLoss, "not finite"));
}

}  // namespace
}  // namespace encoderd
