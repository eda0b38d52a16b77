// What a server says of its settings at the start, without a server.
#include "server/start_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/cgroup.h"
#include "tests/support/fake_model.h"

namespace encoderd {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(WarnOfSettingsTest, BearerTokensWithoutTlsOnANetworkAreAWarning) {
  const FakeModel model({});
  const auto tokens =
      TokenTable::Parse(absl::StrCat("a ", std::string(64, 'a')), nullptr);
  ASSERT_TRUE(tokens.ok());
  const auto log_of = [&](const ServerConfig& config, const TokenTable* table) {
    ::testing::internal::CaptureStderr();
    WarnOfSettings(config, table, {{"fake", &model.info()}});
    return ::testing::internal::GetCapturedStderr();
  };
  ServerConfig config;
  EXPECT_EQ(log_of(config, tokens->get()), "");
  config.insecure = true;
  config.listen = "0.0.0.0:8400";
  EXPECT_THAT(log_of(config, tokens->get()),
              HasSubstr("level=warning event=tokens_in_plain_text "
                        "listen=0.0.0.0:8400 message="));
  EXPECT_EQ(log_of(config, nullptr), "");
  config.tls_certificate_file = config.tls_key_file = "some.pem";
  EXPECT_EQ(log_of(config, tokens->get()), "");
}

ModelInfo CpuModel(int32_t hidden_size, int32_t cores) {
  ModelInfo info;
  info.config.hidden_size = hidden_size;
  info.preferred_sessions = cores;
  return info;
}

std::string LogOfMemory(const ServerConfig& config, int64_t limit_bytes,
                        int64_t resident_bytes,
                        const std::vector<ModelInfo>& infos) {
  std::vector<std::pair<std::string, const ModelInfo*>> models;
  for (const ModelInfo& info : infos) models.emplace_back("m", &info);
  ::testing::internal::CaptureStderr();
  WarnOfMemory(config, limit_bytes, resident_bytes, models);
  return ::testing::internal::GetCapturedStderr();
}

TEST(WarnOfMemoryTest, ALimitBelowWhatTheServerTakesIsAWarning) {
  ServerConfig config;
  config.max_queue_tokens = 1000;
  const ModelInfo model = CpuModel(/*hidden_size=*/100, /*cores=*/2);
  // 5,000,000 + 23,000 x 100 x 2 + 4 x 100 x 1000
  EXPECT_EQ(LogOfMemory(config, 10'000'000, 5'000'000, {model}), "");
  const std::string log = LogOfMemory(config, 9'999'999, 5'000'000, {model});
  EXPECT_THAT(log, HasSubstr("level=warning event=small_memory_limit "
                             "limit_bytes=9999999 needed_bytes=10000000 "
                             "resident_bytes=5000000 scratch_bytes=4600000 "
                             "encode_bytes=400000 message="));
  EXPECT_THAT(log,
              AllOf(HasSubstr("message=\"callers that fill the queue with "
                              "Encode may bring this process to its memory "),
                    HasSubstr("to at least 10000000 bytes, or lower "
                              "--max_queue_tokens or --threads\"")));
}

TEST(WarnOfMemoryTest, TellsWhetherEmbedAloneReachesTheLimit) {
  ServerConfig config;
  config.max_queue_tokens = 1000;
  const ModelInfo model = CpuModel(/*hidden_size=*/100, /*cores=*/2);
  const auto log = [&](int64_t limit_bytes) {
    return LogOfMemory(config, limit_bytes, 5'000'000, {model});
  };
  EXPECT_THAT(log(9'600'000), HasSubstr("fill the queue with Encode"));
  EXPECT_THAT(log(9'599'999), HasSubstr("message=\"under load this process"));
}

TEST(WarnOfMemoryTest, ThreadsOfTheFlagAndAllModelsCount) {
  ServerConfig config;
  config.max_queue_tokens = 1000;
  config.threads = 3;
  ModelInfo on_gpu = CpuModel(/*hidden_size=*/50, /*cores=*/2);
  on_gpu.on_gpu = true;  // its scratch is in the card's memory
  const std::vector<ModelInfo> models = {CpuModel(100, 2), CpuModel(10, 2),
                                         on_gpu};
  // 1000 + 23,000 x (100 + 10) x 3 + 4 x (100 + 10 + 50) x 1000
  EXPECT_THAT(LogOfMemory(config, 1, 1000, models),
              HasSubstr("needed_bytes=8231000 resident_bytes=1000 "
                        "scratch_bytes=7590000 encode_bytes=640000"));
}

TEST(WarnOfMemoryTest, OnAGpuThreadsAreNoRemedy) {
  ModelInfo model = CpuModel(/*hidden_size=*/100, /*cores=*/2);
  model.on_gpu = true;
  EXPECT_THAT(LogOfMemory({}, 1, 1000, {model}),
              EndsWith("or lower --max_queue_tokens\"\n"));
}

TEST(WarnOfMemoryTest, WithoutALimitThereIsNoWarning) {
  ServerConfig config;
  config.max_queue_tokens = int64_t{1} << 32;  // the most that the flag takes
  config.threads = 1024;
  const std::vector<ModelInfo> models(8, CpuModel(1 << 16, 64));
  EXPECT_EQ(LogOfMemory(config, kNoMemoryLimit, int64_t{1} << 40, models), "");
}

// deploy/kubernetes/overlays/cpu: 2 GiB, two CPUs.
TEST(WarnOfMemoryTest, TheLimitOfTheOverlayForKubernetesIsEnough) {
  constexpr int64_t kLimit = int64_t{2} << 30;
  const ModelInfo minilm = CpuModel(/*hidden_size=*/384, /*cores=*/2);
  ServerConfig config;  // also with the default queue, which is longer
  EXPECT_EQ(LogOfMemory(config, kLimit, 135'000'000, {minilm}), "");
  config.max_queue_tokens = 131072;
  EXPECT_EQ(LogOfMemory(config, kLimit, 135'000'000, {minilm}), "");
  const ModelInfo bert_base = CpuModel(/*hidden_size=*/768, /*cores=*/2);
  EXPECT_EQ(LogOfMemory(config, kLimit, 485'000'000, {bert_base}), "");
}

}  // namespace
}  // namespace encoderd
