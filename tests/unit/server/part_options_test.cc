// The settings that each part gets. None below has its default, and no two of
// one kind are the same.
#include "server/part_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/pipeline/input.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

TEST(PartOptionsTest, TheSecretsAreThoseOfTheSettings) {
  ServerConfig config;
  config.tls_certificate_file = "a.pem";
  config.tls_key_file = "b.pem";
  config.tls_client_ca_file = "c.pem";
  config.bearer_token_file = "tokens";
  const SecretFiles files = SecretFilesOf(config);
  EXPECT_EQ(files.certificates.certificate, "a.pem");
  EXPECT_EQ(files.certificates.key, "b.pem");
  EXPECT_EQ(files.certificates.client_ca, "c.pem");
  EXPECT_EQ(files.tokens, "tokens");
}

TEST(PartOptionsTest, GrpcGetsItsAddressAndLimits) {
  ServerConfig config;
  config.listen = "[::1]:11";
  config.tls_certificate_file = "a.pem";
  config.reflection = "false";
  config.max_message_bytes = 101;
  config.max_connection_memory_bytes = 102;
  config.max_connections = 103;
  config.max_connections_per_address = 104;
  config.max_streams_per_connection = 105;
  config.max_connection_idle = absl::Seconds(106);
  config.max_connection_age = absl::Seconds(107);
  const auto options = GrpcOptionsOf(config);
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->listen.host, "::1");
  EXPECT_EQ(options->listen.port, 11);
  EXPECT_TRUE(options->tls);
  EXPECT_FALSE(options->reflection);
  EXPECT_EQ(options->max_message_bytes, 101);
  EXPECT_EQ(options->max_connection_memory_bytes, 102);
  EXPECT_EQ(options->max_connections, 103);
  EXPECT_EQ(options->max_connections_per_address, 104);
  EXPECT_EQ(options->max_streams_per_connection, 105);
  EXPECT_EQ(options->max_connection_idle, absl::Seconds(106));
  EXPECT_EQ(options->max_connection_age, absl::Seconds(107));

  config.listen = "nowhere";
  EXPECT_THAT(GrpcOptionsOf(config),
              IsError(absl::StatusCode::kInvalidArgument, "host:port"));
}

TEST(PartOptionsTest, TheModelIsLoadedAsTheSettingsSay) {
  ServerConfig config;
  config.device = "cpu:portable";
  config.dtype = "bf16";
  config.products = "int8";
  config.tuning_folder = "tuning";
  config.max_len = 101;
  config.cuda_graphs = false;
  const ModelOptions options = ModelOptionsOf(config);
  EXPECT_EQ(options.device, "cpu:portable");
  EXPECT_EQ(options.dtype, "bf16");
  EXPECT_EQ(options.products, "int8");
  EXPECT_EQ(options.tuning_folder, "tuning");
  EXPECT_EQ(options.max_len, 101);
  EXPECT_FALSE(options.cuda_graphs);
}

TEST(PartOptionsTest, ThePipelineGetsItsLimits) {
  ServerConfig config;
  config.max_batch_tokens = 101;
  config.max_queue_tokens = 102;
  config.tokenizer_threads = 103;
  config.max_queue_time = absl::Seconds(104);
  config.max_message_bytes = 105;
  config.max_inputs_per_request = 106;
  const PipelineOptions options = PipelineOptionsOf(config);
  EXPECT_EQ(options.max_batch_tokens, 101);
  EXPECT_EQ(options.max_queue_tokens, 102);
  EXPECT_EQ(options.tokenizer_threads, 103);
  EXPECT_EQ(options.max_queue_time, absl::Seconds(104));
  EXPECT_EQ(options.max_queue_bytes, 4 * 105 + 106 * InputBytes(TextInput()));

  config.max_queue_time = absl::ZeroDuration();
  EXPECT_EQ(PipelineOptionsOf(config).max_queue_time, absl::InfiniteDuration());
}

TEST(PartOptionsTest, CallsAreTracedAtTheRatioOfTheSettings) {
  ServerConfig config;
  EXPECT_EQ(NewTracer(config), nullptr);
  config.otlp_endpoint = "localhost:4317";  // nothing is sent to it
  EXPECT_TRUE(NewTracer(config)->Begin("").has_value());
  config.trace_ratio = 0;
  EXPECT_FALSE(NewTracer(config)->Begin("").has_value());
}

}  // namespace
}  // namespace encoderd
