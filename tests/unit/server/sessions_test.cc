// The Sessions of a server, over a model that computes nothing.
#include "server/sessions.h"

#include <gtest/gtest.h>

#include "tests/support/fake_model.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

using testing::HasSubstr;

TEST(NewSessionsTest, EachSessionOfADeviceOfItsOwnStreamsIsWarmedUp) {
  FakeModelOptions options;
  options.sessions = 3;
  FakeModel model(options);
  const auto serving = NewSessions(ServerConfig(), model);
  ASSERT_THAT(serving, IsOk());
  EXPECT_EQ(serving->sessions.size(), 3);
  EXPECT_TRUE(serving->pause_sessions.empty());
  std::vector<int> warmed;
  for (const FakeDevice::Batch& batch : model.device().log())
    warmed.push_back(batch.session);
  EXPECT_EQ(warmed, (std::vector<int>{0, 1, 2}));
}

TEST(NewSessionsTest, OnePassWarmsUpAllSessionsThatShareTheirWeights) {
  FakeModelOptions options;
  options.sessions = 3;
  options.pauses = true;
  FakeModel model(options);
  const auto serving = NewSessions(ServerConfig(), model);
  ASSERT_THAT(serving, IsOk());
  EXPECT_EQ(serving->sessions.size(), 3);
  EXPECT_EQ(serving->pause_sessions.size(), 3);
  EXPECT_EQ(model.device().log_size(), 1);
}

TEST(NewSessionsTest, ADeviceThatIsLostWhileItWarmsUpIsSaid) {
  FakeModelOptions options;
  options.sessions = 3;
  options.lost_after = 1;
  const auto serving = NewSessions(ServerConfig(), FakeModel(options));
  EXPECT_EQ(serving.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(serving.status().message()),
              HasSubstr("the device is lost"));
}

}  // namespace
}  // namespace encoderd
