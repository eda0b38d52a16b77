#include "client/cpp/loopback.h"

#include "gtest/gtest.h"

namespace encoderd::client {
namespace {

TEST(IsLoopbackTest, KnowsThisMachineInEveryFormOfATarget) {
  for (const char* target :
       {"localhost", "localhost:8400", "LocalHost:8400", "127.0.0.1:8400",
        "127.1.2.3", "[::1]:8400", "::1", "dns:localhost:8400",
        "dns:///127.0.0.1:8400", "ipv4:127.0.0.1:8400,127.0.0.2:8400",
        "ipv6:[::1]:8400", "unix:/run/encoderd", "unix:///run/encoderd",
        "unix-abstract:encoderd"}) {
    EXPECT_TRUE(IsLoopback(target)) << target;
  }
}

TEST(IsLoopbackTest, TakesEverythingElseForAnotherMachine) {
  for (const char* target :
       {"", "example.com:8400", "localhost.example.com:8400",
        "127.0.0.1.example.com", "128.0.0.1:8400", "0.0.0.0:8400", "[::]:8400",
        "[::2]:8400", "::ffff:10.0.0.1", "ipv4:127.0.0.1:8400,10.0.0.1:8400",
        "dns://10.0.0.1/localhost:8400", "xds:///localhost:8400",
        "unix.example.com:8400", "Unix:example", "10.0.0.1:127"}) {
    EXPECT_FALSE(IsLoopback(target)) << target;
  }
}

TEST(IsLocalhostTest, KnowsTheNameInEveryFormOfATarget) {
  for (const char* target : {"localhost", "localhost:8400", "LocalHost:8400",
                             "dns:localhost:8400", "dns:///localhost:8400"}) {
    EXPECT_TRUE(IsLocalhost(target)) << target;
  }
  for (const char* target :
       {"", "127.0.0.1:8400", "[::1]:8400", "localhost.example.com:8400",
        "dns://10.0.0.1/localhost:8400", "ipv4:127.0.0.1:8400",
        "unix:localhost"}) {
    EXPECT_FALSE(IsLocalhost(target)) << target;
  }
}

}  // namespace
}  // namespace encoderd::client
