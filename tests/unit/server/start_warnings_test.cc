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

std::string LogOfMemory(const ServerConfig& config, const MemorySizes& memory,
                        const std::vector<ModelInfo>& infos) {
  std::vector<std::pair<std::string, const ModelInfo*>> models;
  for (const ModelInfo& info : infos) models.emplace_back("m", &info);
  ::testing::internal::CaptureStderr();
  WarnOfMemory(config, memory, models);
  return ::testing::internal::GetCapturedStderr();
}

// With a queue of 1000 tokens: 5,000,000 + 4,600,000 + 4 x 100 x 1000.
std::string LogOfLimit(int64_t limit_bytes) {
  ServerConfig config;
  config.max_queue_tokens = 1000;
  return LogOfMemory(config, {limit_bytes, 5'000'000, 4'600'000},
                     {CpuModel(/*hidden_size=*/100, /*cores=*/2)});
}

TEST(WarnOfMemoryTest, ALimitBelowWhatTheServerTakesIsAWarning) {
  EXPECT_EQ(LogOfLimit(10'000'000), "");
  EXPECT_THAT(LogOfLimit(9'999'999),
              HasSubstr("level=warning event=small_memory_limit "
                        "limit_bytes=9999999 needed_bytes=10000000 "
                        "resident_bytes=5000000 scratch_bytes=4600000 "
                        "encode_bytes=400000 message="));
}

TEST(WarnOfMemoryTest, TellsWhetherEmbedAloneReachesTheLimit) {
  EXPECT_THAT(LogOfLimit(9'600'000),
              AllOf(HasSubstr("message=\"callers that fill the queue with "
                              "Encode may bring this process to its memory "),
                    EndsWith("to at least 10000000 bytes, or lower "
                             "--max_queue_tokens\"\n")));
  EXPECT_THAT(LogOfLimit(9'599'999),
              AllOf(HasSubstr("message=\"under load this process may reach"),
                    EndsWith("to at least 10000000 bytes\"\n")));
}

TEST(WarnOfMemoryTest, TheQueuesOfAllModelsCount) {
  ServerConfig config;
  config.max_queue_tokens = 1000;
  // 1000 + 20 + 4 x (100 + 10) x 1000
  EXPECT_THAT(
      LogOfMemory(config, {1, 1000, 20}, {CpuModel(100, 2), CpuModel(10, 2)}),
      HasSubstr("needed_bytes=441020 resident_bytes=1000 scratch_bytes=20 "
                "encode_bytes=440000"));
}

TEST(WarnOfMemoryTest, WithoutALimitThereIsNoWarning) {
  ServerConfig config;
  config.max_queue_tokens = int64_t{1} << 32;  // the most that the flag takes
  const std::vector<ModelInfo> models(8, CpuModel(1 << 16, 64));
  EXPECT_EQ(
      LogOfMemory(config, {kNoMemoryLimit, int64_t{1} << 40, int64_t{1} << 40},
                  models),
      "");
}

std::string LogOfLoading(const ServerConfig& config, const LoadSizes& sizes) {
  ::testing::internal::CaptureStderr();
  WarnOfLoading(config, sizes);
  return ::testing::internal::GetCapturedStderr();
}

TEST(WarnOfLoadingTest, ALimitBelowTheWeightsIsAWarningBeforeTheyAreRead) {
  const ServerConfig config;
  EXPECT_EQ(LogOfLoading(config, {5000, 1000, 4000}), "");
  EXPECT_THAT(
      LogOfLoading(config, {4999, 1000, 4000}),
      AllOf(HasSubstr("level=warning event=small_memory_limit "
                      "limit_bytes=4999 needed_bytes=5000 "
                      "resident_bytes=1000 weights_bytes=4000 "
                      "message=\"on a CPU, loading the weights may exceed "),
            EndsWith("to more than 5000 bytes\"\n")));
}

TEST(WarnOfLoadingTest, WeightsThatAreNarrowedTakeLess) {
  ServerConfig config;
  config.dtype = "bf16";
  EXPECT_THAT(LogOfLoading(config, {2999, 1000, 4000}),
              HasSubstr("needed_bytes=3000 "));
  EXPECT_EQ(LogOfLoading(config, {3000, 1000, 4000}), "");
  config.products = "int8";
  EXPECT_THAT(LogOfLoading(config, {1999, 1000, 4000}),
              HasSubstr("needed_bytes=2000 "));
  EXPECT_EQ(LogOfLoading(config, {2000, 1000, 4000}), "");
}

TEST(WarnOfLoadingTest, WeightsThatAreUnknownOrForAGpuAreNoWarning) {
  ServerConfig config;
  EXPECT_EQ(LogOfLoading(config, {1, 1000, 0}), "");
  config.device = "cuda:0";
  EXPECT_EQ(LogOfLoading(config, {1, 1000, 4000}), "");
  config.device = "auto";
  config.dtype = "fp16";
  EXPECT_EQ(LogOfLoading(config, {1, 1000, 4000}), "");
  config.dtype = "auto";
  config.products = "fp8";
  EXPECT_EQ(LogOfLoading(config, {1, 1000, 4000}), "");
}

// deploy/kubernetes/overlays/cpu: 2 GiB, two CPUs, with the sizes that "Size"
// in deploy/README.md gives.
TEST(WarnOfMemoryTest, TheLimitOfTheOverlayForKubernetesIsEnough) {
  constexpr int64_t kLimit = int64_t{2} << 30;
  const ModelInfo minilm = CpuModel(/*hidden_size=*/384, /*cores=*/2);
  ServerConfig config;  // also with the default queue, which is longer
  EXPECT_EQ(LogOfMemory(config, {kLimit, 135'000'000, 18'000'000}, {minilm}),
            "");
  config.max_queue_tokens = 131072;
  EXPECT_EQ(LogOfMemory(config, {kLimit, 135'000'000, 18'000'000}, {minilm}),
            "");
  const ModelInfo bert_base = CpuModel(/*hidden_size=*/768, /*cores=*/2);
  EXPECT_EQ(LogOfMemory(config, {kLimit, 485'000'000, 36'000'000}, {bert_base}),
            "");
}

}  // namespace
}  // namespace encoderd
