#include "client/cpp/target.h"

#include <string>
#include <utility>

#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace encoderd::client {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const std::string& target) {
  const auto checked = CheckTarget(target);
  EXPECT_EQ(checked.status().code(), absl::StatusCode::kInvalidArgument)
      << target;
  EXPECT_EQ(Client::Connect(target).status(), checked.status());
  return std::string(checked.status().message());
}

TEST(CheckTargetTest, AddsThePortWhereThereIsNone) {
  const std::pair<const char*, const char*> targets[] = {
      {"localhost", "localhost:8400"},
      {"10.0.0.7", "10.0.0.7:8400"},
      {"::1", "[::1]:8400"},
      {"[::1]", "[::1]:8400"},
      {"dns:host", "dns:host:8400"},
      {"dns:///host", "dns:///host:8400"},
      {"dns://8.8.8.8/host", "dns://8.8.8.8/host:8400"},
      {"ipv4:10.0.0.7,10.0.0.8:1", "ipv4:10.0.0.7:8400,10.0.0.8:1"},
      {"ipv6:[::1]", "ipv6:[::1]:8400"}};
  for (const auto& [target, address] : targets) {
    EXPECT_EQ(CheckTarget(target).value(), address);
  }
}

TEST(CheckTargetTest, LeavesWhatIsCompleteAsItIs) {
  for (const char* target :
       {"localhost:1", "host.example:65535", "[::1]:8400", "unix:/tmp/socket",
        "unix:///tmp/socket", "unix-abstract:name", "dns:///host:8400",
        "ipv4:127.0.0.1:8400", "ipv6:[::1]:8400", "own-resolver:///name"}) {
    EXPECT_EQ(CheckTarget(target).value(), target);
  }
}

TEST(CheckTargetTest, RefusesAPortThatDoesNotExist) {
  for (const char* target :
       {"127.0.0.1:99999", "localhost:0", "localhost:65536",
        "localhost:", "localhost:-1", "localhost:http", "localhost:8400/",
        "[::1]:70000", "dns:///host:70000", "ipv4:10.0.0.7:1,10.0.0.8:70000",
        "localhost:184467440737095516168400"}) {
    EXPECT_THAT(Refusal(target), HasSubstr("port must be a number from 1 to "
                                           "65535; encoderd's is 8400"))
        << target;
  }
  EXPECT_THAT(Refusal("127.0.0.1:99999"),
              HasSubstr("target \"127.0.0.1:99999\": "));
}

TEST(CheckTargetTest, SaysWhatToWriteInsteadOfAUrl) {
  EXPECT_EQ(Refusal("http://localhost:9400/v1"),
            "target \"http://localhost:9400/v1\": a URL is not an address: "
            "write HOST:PORT, such as localhost:9400");
  EXPECT_THAT(Refusal("HTTPS://host:443"),
              HasSubstr("such as host:443, and turn TLS on (tls)"));
  // The port of metrics is not that of gRPC.
  EXPECT_THAT(Refusal("http://host:8401/metrics"),
              HasSubstr("such as localhost:8400"));
  EXPECT_THAT(Refusal("grpc://host"), HasSubstr("such as host"));
}

TEST(CheckTargetTest, RefusesAnAddressWithoutAHost) {
  EXPECT_THAT(Refusal(""), HasSubstr("target is empty: write HOST:PORT"));
  EXPECT_THAT(Refusal(":9400"), HasSubstr("such as localhost:9400"));
  EXPECT_THAT(Refusal("[]:1"), HasSubstr("the host is missing"));
  EXPECT_THAT(Refusal("dns:///"), HasSubstr("the host is missing"));
  EXPECT_THAT(Refusal("[::1"), HasSubstr("the bracket is not closed"));
  EXPECT_THAT(Refusal("local host:1"), HasSubstr("has no blanks"));
  EXPECT_THAT(Refusal("localhost:8400 "), HasSubstr("has no blanks"));
}

}  // namespace
}  // namespace encoderd::client
