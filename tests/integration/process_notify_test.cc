// The server as a process of a service manager (systemd, Type=notify).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/exit_codes.h"
#include "tests/integration/served.h"
#include "tests/support/notify_socket.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Watched(const std::string& socket,
                                 const std::string& fake,
                                 const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"/usr/bin/env",
                                        absl::StrCat("NOTIFY_SOCKET=", socket)};
  for (const std::string& argument : Arguments(fake, more)) {
    arguments.push_back(argument);
  }
  return arguments;
}

TEST(ProcessNotifyTest, SaysWhenItServesAndHowLongLeavingMayTake) {
  const TempFolder folder;
  const std::string name = folder.Path("notify");
  NotifySocket socket(name);
  Process process(
      Watched(name, "load_ms:0", {"--drain_delay=0", "--drain_timeout=20s"}));
  EXPECT_THAT(socket.Next(), HasSubstr("READY=1\n")) << process.log();
  // It is true by then.
  EXPECT_NE(process.WaitForLine("event=serving"), "");
  process.Signal(SIGTERM);
  const std::string last = socket.Next();
  EXPECT_THAT(last, HasSubstr("STOPPING=1\n"));
  EXPECT_THAT(last, HasSubstr("EXTEND_TIMEOUT_USEC=30000000\n"));
  EXPECT_EQ(process.Wait(), kExitOk) << process.log();
}

TEST(ProcessNotifyTest, IsNotReadyWhileItLoads) {
  const TempFolder folder;
  const std::string name = folder.Path("notify");
  NotifySocket socket(name);
  Process process(Watched(name, "load_ms:3600000"));
  ASSERT_NE(process.WaitForLine("event=listening"), "") << process.log();
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), kExitOk) << process.log();
  EXPECT_EQ(socket.Next(absl::ZeroDuration()), "");
}

TEST(ProcessNotifyTest, ServesAllTheSameWhereNobodyHearsIt) {
  const TempFolder folder;
  Process process(Watched(folder.Path("none"), "load_ms:0"));
  const std::string line = process.WaitForLine("event=notify_failed");
  EXPECT_THAT(line, HasSubstr(absl::StrCat(
                        "NOTIFY_SOCKET=", folder.Path("none"), ": ")))
      << process.log();
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), kExitOk) << process.log();
}

}  // namespace
}  // namespace encoderd
