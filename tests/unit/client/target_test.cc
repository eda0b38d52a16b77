#include "client/cpp/target.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
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

TEST(CheckTargetTest, DialsAndRefusesWhatThePythonClientDoes) {
  std::ifstream table(ENCODERD_TARGETS);
  int dialed = 0, refused = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> entry =
        absl::StrSplit(line, absl::MaxSplits(" -> ", 1));
    ASSERT_EQ(entry.size(), 2u) << line;
    if (entry[1] == "refused") {
      EXPECT_THAT(Refusal(entry[0]), HasSubstr("target ")) << line;
      ++refused;
    } else {
      const auto address = CheckTarget(entry[0]);
      ASSERT_TRUE(address.ok()) << address.status();
      EXPECT_EQ(*address, entry[1]);
      ++dialed;
    }
  }
  EXPECT_GT(dialed, 30);
  EXPECT_GT(refused, 40);
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
  EXPECT_THAT(Refusal("tls://host"), HasSubstr("and turn TLS on (tls)"));
}

TEST(CheckTargetTest, RefusesAnAddressWithoutAHost) {
  EXPECT_THAT(Refusal(""), HasSubstr("target is empty: write HOST:PORT"));
  EXPECT_THAT(Refusal(":9400"), HasSubstr("such as localhost:9400"));
  EXPECT_THAT(Refusal("[]:1"), HasSubstr("the host is missing"));
  EXPECT_THAT(Refusal("dns:///"), HasSubstr("the host is missing"));
  EXPECT_THAT(Refusal("[::1"), HasSubstr("the bracket is not closed"));
  EXPECT_THAT(Refusal("[::1]8400"),
              HasSubstr("only a port may follow the bracket"));
  EXPECT_THAT(Refusal("8400"),
              HasSubstr("a port without a host: write localhost:8400"));
  EXPECT_THAT(Refusal("host/x"), HasSubstr("a host has no '/'"));
  EXPECT_THAT(Refusal("one,two"), HasSubstr("a host has no ','"));
  EXPECT_THAT(Refusal("local host:1"), HasSubstr("has no blanks"));
  EXPECT_THAT(Refusal("localhost:8400 "), HasSubstr("has no blanks"));
}

}  // namespace
}  // namespace encoderd::client
