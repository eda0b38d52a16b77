#include "server/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

ServerConfig Good() {
  ServerConfig config;
  config.models = {{"all-MiniLM-L6-v2", "/models/all-MiniLM-L6-v2"}};
  return config;
}

TEST(ConfigTest, TheDefaultsAreValidOnceAModelIsGiven) {
  EXPECT_THAT(Validate(Good()), IsOk());
  EXPECT_THAT(Validate(ServerConfig()), IsError(kInvalid, "--model"));
}

TEST(ConfigTest, EveryRangeNamesItsFlagValueAndLimit) {
  const struct {
    std::function<void(ServerConfig*)> spoil;
    const char* message;
  } kCases[] = {
      {[](ServerConfig* c) { c->max_len = -1; }, "--max_len=-1: must be 0 to"},
      {[](ServerConfig* c) { c->threads = 1025; },
       "--threads=1025: must be 0 to 1024"},
      {[](ServerConfig* c) { c->tokenizer_threads = 0; },
       "--tokenizer_threads=0: must be 1 to 256"},
      {[](ServerConfig* c) { c->max_batch_tokens = -1; },
       "--max_batch_tokens=-1: must be 0 to 4194304"},
      {[](ServerConfig* c) { c->max_queue_tokens = 0; },
       "--max_queue_tokens=0: must be 1"},
      {[](ServerConfig* c) { c->max_queue_time = absl::Hours(25); },
       "--max_queue_time=25h: must be 0 (no limit) or 1ms to 24h"},
      {[](ServerConfig* c) { c->max_queue_time = absl::Nanoseconds(1); },
       "--max_queue_time=1ns: must be 0 (no limit) or 1ms to 24h"},
      {[](ServerConfig* c) { c->max_inputs_per_request = 0; },
       "--max_inputs_per_request=0"},
      {[](ServerConfig* c) { c->max_message_bytes = (256 << 20) + 1; },
       "--max_message_bytes=268435457: must be at most "
       "--max_connection_memory_bytes=268435456"},
      {[](ServerConfig* c) { c->max_message_bytes = 1; },
       "--max_message_bytes=1: must be 65536"},
      {[](ServerConfig* c) { c->max_connection_memory_bytes = 1 << 20; },
       "must be 268435456"},
      {[](ServerConfig* c) { c->max_connections = 0; }, "--max_connections=0"},
      {[](ServerConfig* c) { c->max_connections_per_address = -1; },
       "--max_connections_per_address=-1"},
      {[](ServerConfig* c) { c->max_connections_per_address = 1025; },
       "--max_connections_per_address=1025: must be at most "
       "--max_connections=1024"},
      {[](ServerConfig* c) { c->max_connection_idle = absl::Hours(25); },
       "--max_connection_idle=25h: must be 0 (no limit) or 1s to 24h"},
      {[](ServerConfig* c) { c->max_connection_idle = absl::Nanoseconds(1); },
       "--max_connection_idle=1ns: must be 0 (no limit) or 1s to 24h"},
      {[](ServerConfig* c) { c->max_connection_age = absl::Microseconds(900); },
       "--max_connection_age=900us: must be 0 (no limit) or 1s to 168h"},
      {[](ServerConfig* c) { c->max_connection_age = -absl::Seconds(1); },
       "--max_connection_age=-1s"},
      {[](ServerConfig* c) { c->max_streams_per_connection = 0; },
       "--max_streams_per_connection=0: must be 1 to 1048576"},
      {[](ServerConfig* c) { c->max_streams = 0; }, "--max_streams=0"},
      {[](ServerConfig* c) { c->max_unread_answer_bytes = 1; },
       "--max_unread_answer_bytes=1: must be 1048576"},
      {[](ServerConfig* c) { c->device = "tpu"; },
       "--device=tpu: must be one of auto, cpu, cpu:portable, cpu:avx2, "
       "cpu:avx512, cpu:avx512_bf16, cpu:avx512_amx, cuda, cuda:N, "
       "cuda:N,cuda:M,..., cuda:all"},
      {[](ServerConfig* c) { c->device = "cuda:0,cpu"; },
       "--device=cuda:0,cpu: must be one of"},
      {[](ServerConfig* c) { c->device = "cuda:0,"; },
       "--device=cuda:0,: must be one of"},
      {[](ServerConfig* c) { c->device = "cuda:x"; },
       "--device=cuda:x: must be one of auto, cpu, cpu:portable, cpu:avx2, "
       "cpu:avx512, cpu:avx512_bf16, cpu:avx512_amx, cuda, cuda:N, "
       "cuda:N,cuda:M,..., cuda:all"},
      {[](ServerConfig* c) { c->dtype = "int4"; },
       "--dtype=int4: must be one of auto, fp32, bf16, fp16"},
      {[](ServerConfig* c) { c->dtype = "int8"; },
       "--dtype=int8: 8 bits are for products alone: set --products=int8"},
      {[](ServerConfig* c) { c->products = "int4"; },
       "--products=int4: must be one of dtype, fp8, int8"},
      {[](ServerConfig* c) { c->listen = "host"; },
       "--listen=host: must be host:port"},
      {[](ServerConfig* c) { c->http_listen = "host:70000"; },
       "--http_listen=host:70000: the port must be 0 to 65535"},
      {[](ServerConfig* c) { c->listen = "unix:/run/encoderd.sock"; },
       "--listen=unix:/run/encoderd.sock: Unix sockets are not supported: "
       "give host:port, such as 127.0.0.1:8400"},
      {[](ServerConfig* c) { c->otlp_endpoint = "collector"; },
       "--otlp_endpoint=collector: must be host:port of a collector's OTLP"},
      {[](ServerConfig* c) { c->otlp_endpoint = "https://collector:0"; },
       "--otlp_endpoint=https://collector:0: must be host:port"},
      {[](ServerConfig* c) { c->trace_ratio = 1.5; },
       "--trace_ratio=1.5: must be 0 to 1"},
      {[](ServerConfig* c) { c->trace_ratio = 0.5; },
       "--trace_ratio=0.5: needs --otlp_endpoint"},
      {[](ServerConfig* c) { c->reflection = "yes"; },
       "--reflection=yes: must be one of auto, true, false"},
      {[](ServerConfig* c) { c->tls_certificate_file = "a.pem"; },
       "--tls_certificate_file=a.pem: needs --tls_key_file"},
      {[](ServerConfig* c) { c->tls_key_file = "a.key"; },
       "--tls_key_file=a.key: needs --tls_certificate_file"},
      {[](ServerConfig* c) { c->tls_client_ca_file = "ca.pem"; },
       "--tls_client_ca_file=ca.pem: needs --tls_certificate_file"},
      {[](ServerConfig* c) { c->health_needs_token = true; },
       "--health_needs_token=true: needs --bearer_token_file"},
      {[](ServerConfig* c) { c->drain_timeout = absl::Hours(2); },
       "--drain_timeout=2h: must be 0 to 1h"},
      {[](ServerConfig* c) { c->drain_delay = -absl::Seconds(1); },
       "--drain_delay=-1s"},
  };
  for (const auto& test : kCases) {
    ServerConfig config = Good();
    test.spoil(&config);
    EXPECT_THAT(Validate(config), IsError(kInvalid, test.message));
  }
}

TEST(ConfigTest, TwoListenersDoNotShareAPort) {
  ServerConfig config = Good();
  config.insecure = true;
  for (const auto& [listen, http_listen, good] :
       std::vector<std::tuple<std::string, std::string, bool>>{
           {"127.0.0.1:8400", "127.0.0.1:8400", false},
           {"0.0.0.0:8400", "127.0.0.1:8400", false},
           {"127.0.0.1:8400", "[::]:8400", false},
           {"127.0.0.1:8400", "127.0.0.2:8400", true},
           {"127.0.0.1:8400", "127.0.0.1:8401", true},
           {"127.0.0.1:0", "127.0.0.1:0", true},
           {"127.0.0.1:8400", "", true}}) {
    config.listen = listen;
    config.http_listen = http_listen;
    if (good) {
      EXPECT_THAT(Validate(config), IsOk()) << listen << " " << http_listen;
    } else {
      EXPECT_THAT(Validate(config),
                  IsError(kInvalid,
                          absl::StrCat("--http_listen=", http_listen,
                                       ": --listen=", listen,
                                       " has the same port; choose another")));
    }
  }
}

TEST(ConfigTest, OtherMachinesReachItWithTlsOrKnowingly) {
  for (const char* address :
       {"127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "localhost:1"}) {
    ServerConfig config = Good();
    config.listen = address;
    EXPECT_THAT(Validate(config), IsOk()) << address;
    config = Good();
    config.http_listen = address;
    EXPECT_THAT(Validate(config), IsOk()) << address;
  }
  for (const char* address : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "*:1",
                              "127.example:1", "localhost.example:1"}) {
    ServerConfig config = Good();
    config.listen = address;
    EXPECT_THAT(Validate(config),
                IsError(kInvalid, absl::StrCat("--listen=", address,
                                               ": other machines can reach")));
    config.insecure = true;
    EXPECT_THAT(Validate(config), IsOk());
    config.insecure = false;
    config.tls_certificate_file = config.tls_key_file = "server.pem";
    EXPECT_THAT(Validate(config), IsOk());
    config = Good();
    config.http_listen = address;
    EXPECT_THAT(Validate(config), IsError(kInvalid, "--http_listen="));
  }
}

TEST(ConfigTest, ReflectionIsOffWhereCallsNeedTokensUnlessItIsAskedFor) {
  ServerConfig config = Good();
  EXPECT_TRUE(config.serves_reflection());
  config.bearer_token_file = "tokens";
  EXPECT_FALSE(config.serves_reflection());
  config.reflection = "true";
  EXPECT_TRUE(config.serves_reflection());
  config.bearer_token_file = "";
  config.reflection = "false";
  EXPECT_FALSE(config.serves_reflection());
}

TEST(ConfigTest, TheModelsNameIsGivenOrTheFoldersLastPart) {
  const auto folder = SplitModelFlag("/models/mini/");
  ASSERT_THAT(folder, IsOk());
  EXPECT_EQ(folder->name, "mini");
  EXPECT_EQ(folder->folder, "/models/mini/");
  const auto named = SplitModelFlag("team/mini=/models/x");
  ASSERT_THAT(named, IsOk());
  EXPECT_EQ(named->name, "team/mini");
  EXPECT_EQ(named->folder, "/models/x");
  EXPECT_THAT(SplitModelFlag("name=").status(), IsError(kInvalid, "folder"));
  EXPECT_THAT(SplitModelFlag("=folder").status(),
              IsError(kInvalid, "1 to 128"));
  EXPECT_THAT(SplitModelFlag("a b=folder").status(),
              IsError(kInvalid, "letters"));
  EXPECT_THAT(SplitModelFlag(std::string(129, 'n') + "=folder").status(),
              IsError(kInvalid, "1 to 128"));
}

TEST(ConfigTest, TwoModelsOfOneNameAreRefused) {
  ServerConfig config = Good();
  config.models = {{"mini", "/a"}, {"large", "/b"}, {"mini", "/c"}};
  EXPECT_THAT(Validate(config), IsError(kInvalid, "mini=/c"));
}

TEST(ConfigTest, AnEndpointOfTracesIsEncryptedWithHttpsOnly) {
  const struct {
    std::string endpoint;
    std::string address;
    bool tls;
  } kCases[] = {
      {"localhost:4317", "localhost:4317", false},
      {"[::1]:4317", "[::1]:4317", false},
      {"http://localhost:4317", "localhost:4317", false},
      {"http://[::1]:4317/", "[::1]:4317", false},
      {"https://collector:443", "collector:443", true},
      {"https://collector:443/", "collector:443", true},
  };
  for (const auto& test : kCases) {
    const auto target = SplitOtlpEndpoint(test.endpoint);
    ASSERT_TRUE(target.ok()) << test.endpoint;
    EXPECT_EQ(target->address, test.address);
    EXPECT_EQ(target->tls, test.tls) << test.endpoint;
  }
}

}  // namespace
}  // namespace encoderd
