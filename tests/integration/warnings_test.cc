// What a server in this process logs of its settings and models at its start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// What a server says at its start.
std::string LogOfLoading(const FakeModelOptions& fake,
                         const ServerConfig& config) {
  TestServer server(TestServer::NotLoaded(), fake, config);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(server.Load().ok());
  return ::testing::internal::GetCapturedStderr();
}

TEST(WarningsTest, ATuningFolderWithoutAGpuIsAWarningAtStart) {
  for (const std::string folder : {"", "/some/folder"}) {
    ServerConfig config = TestConfig();
    config.tuning_folder = folder;
    const std::string log = LogOfLoading({}, config);
    EXPECT_EQ(absl::StrContains(log,
                                "level=warning event=no_tuning "
                                "tuning_folder=/some/folder device=fake"),
              !folder.empty())
        << log;
  }
}

TEST(WarningsTest, AQueueBelowMaxLenIsAWarningAtStart) {
  const TempFolder folder;
  folder.Write("tokens",
               absl::StrCat("a ", std::string(64, 'a'), "\nb ",
                            std::string(64, 'b'), " max_queue_tokens=7"));
  ServerConfig config = TestConfig();
  config.max_queue_tokens = 10;
  config.bearer_token_file = folder.Path("tokens");
  FakeModelOptions fake;
  fake.max_len = 11;
  const std::string log = LogOfLoading(fake, config);
  EXPECT_THAT(log, HasSubstr("level=warning event=small_queue model=fake "
                             "max_queue_tokens=10 max_len=11 message="));
  EXPECT_THAT(log, HasSubstr("raise --max_queue_tokens to at least 11"));
  EXPECT_THAT(log, HasSubstr("level=warning event=small_queue model=fake "
                             "token=b max_queue_tokens=7 max_len=11 message="));
  EXPECT_THAT(log, HasSubstr("raise the token's max_queue_tokens to at least "
                             "11"));
  fake.max_len = 7;
  EXPECT_THAT(LogOfLoading(fake, config), Not(HasSubstr("small_queue")));
}

TEST(WarningsTest, AMemoryLimitBelowWhatTheServerTakesIsAWarningAtStart) {
  TestServer server(TestServer::NotLoaded(), {});
  ::testing::internal::CaptureStderr();
  FakeModelOptions fake;
  fake.sessions = 2;
  fake.pauses = true;  // so two Sessions more
  const auto load = [&](const std::string&, const ModelOptions& options) {
    return FakeModel::Load(fake, options);
  };
  EXPECT_TRUE(server.server().Load(load, /*memory_limit_bytes=*/1).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ContainsRegex("level=warning event=small_memory_limit "
                            "limit_bytes=1 .* resident_bytes=[1-9].* "
                            "scratch_bytes=4000 "));
}

TEST(WarningsTest, AMemoryLimitBelowTheWeightsIsAWarningBeforeTheLoad) {
  const TempFolder folder;
  for (const auto& [name, values] :
       {std::pair("a", 750), std::pair("b", 1000)}) {
    folder.Write(absl::StrCat(name, "/model.safetensors"),
                 SafetensorsBytes(
                     {FloatTensor("t", {values}, std::vector<float>(values))}));
  }
  ServerConfig config = TestConfig();
  config.models = {{"a", folder.Path("a")}, {"b", folder.Path("b")}};
  TestServer server(TestServer::NotLoaded(), {}, config);
  std::string log;
  ::testing::internal::CaptureStderr();
  const auto killed = [&](const std::string&, const ModelOptions&) {
    log = ::testing::internal::GetCapturedStderr();
    return absl::ResourceExhaustedError("");
  };
  EXPECT_FALSE(server.server().Load(killed, /*memory_limit_bytes=*/1).ok());
  EXPECT_THAT(log, ContainsRegex("level=warning event=small_memory_limit "
                                 "limit_bytes=1 .* resident_bytes=[1-9].* "
                                 "weights_bytes=7000 "));
}

TEST(WarningsTest, MoreThreadsThanCoresAreAWarningAtStart) {
  ServerConfig config = TestConfig();
  FakeModelOptions fake;
  fake.sessions = 2;  // as many as the cores of a CPU
  config.threads = 3;
  EXPECT_THAT(LogOfLoading(fake, config),
              HasSubstr("level=warning event=more_threads_than_cores "
                        "model=fake threads=3 cores=2 message="));
  config.threads = 2;
  EXPECT_THAT(LogOfLoading(fake, config), Not(HasSubstr("event=more_threads")));
}

TEST(WarningsTest, ANoteThatTheVectorsMayBeOthersIsAWarning) {
  FakeModelOptions fake;
  fake.warning = "no modules.json";
  EXPECT_THAT(LogOfLoading(fake, TestConfig()),
              AllOf(HasSubstr("level=warning event=model_note model=fake "
                              "note=\"no modules.json\""),
                    HasSubstr("level=info event=model_note model=fake "
                              "note=\"computes nothing\"")));
}

}  // namespace
}  // namespace encoderd
