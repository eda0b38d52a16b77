#include "server/net/host_port.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace encoderd {
namespace {

TEST(HostPortTest, AddressesHaveAHostAndAPort) {
  const auto any_port = ParseHostPort("127.0.0.1:0");
  ASSERT_THAT(any_port, IsOk());
  EXPECT_EQ(any_port->host, "127.0.0.1");
  EXPECT_EQ(any_port->port, 0);
  const auto v6 = ParseHostPort("[::1]:8400");
  ASSERT_THAT(v6, IsOk());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, 8400);
  for (const char* bad : {"", ":1", "host", "host:", "host:x", "::1:80", "[]:1",
                          "host:-1", "host:65536", "host:+80", "host: 80"}) {
    EXPECT_FALSE(ParseHostPort(bad).ok()) << bad;
  }
}

TEST(HostPortTest, OnlyLoopbackIsOutOfReachOfOthers) {
  for (const char* own : {"localhost", "::1", "127.0.0.1", "127.1.2.3"}) {
    EXPECT_FALSE(OthersReach({own, 1})) << own;
  }
  for (const char* open :
       {"0.0.0.0", "::", "10.0.0.1", "127.example.com", "1270.0.0.1", "host"}) {
    EXPECT_TRUE(OthersReach({open, 1})) << open;
  }
}

}  // namespace
}  // namespace encoderd
