// What a service manager hears, at a socket of the test's own.
#include "server/service_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/notify_socket.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;

TEST(ServiceManagerTest, TheEnvironmentNamesTheSocket) {
  setenv("NOTIFY_SOCKET", "@here", /*overwrite=*/1);
  EXPECT_EQ(ServiceManagerSocket(), "@here");
  unsetenv("NOTIFY_SOCKET");
  EXPECT_EQ(ServiceManagerSocket(), "");
}

TEST(ServiceManagerTest, WithoutASocketNothingIsSent) {
  EXPECT_TRUE(TellServiceManager("", kReadyLines).ok());
}

TEST(ServiceManagerTest, HearsAtAPathAndAtAnAbstractName) {
  const TempFolder folder;
  for (const std::string& name :
       {folder.Path("notify"), absl::StrCat("@", folder.Path("notify"))}) {
    NotifySocket socket(name);
    ASSERT_TRUE(TellServiceManager(name, kReadyLines).ok());
    EXPECT_EQ(socket.Next(), "READY=1\nSTATUS=serving\n") << name;
  }
}

TEST(ServiceManagerTest, ASocketThatNobodyReadsIsNamed) {
  const TempFolder folder;
  for (const std::string& name :
       {folder.Path("none"), absl::StrCat("@", folder.Path("none"))}) {
    const absl::Status status = TellServiceManager(name, kReadyLines);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("NOTIFY_SOCKET=", name, ": ")));
  }
}

TEST(ServiceManagerTest, ANameThatIsTooLongIsRefusedAndNotCut) {
  const absl::Status status =
      TellServiceManager(absl::StrCat("/", std::string(107, 'x')), kReadyLines);
  EXPECT_THAT(std::string(status.message()), HasSubstr("too long"));
}

TEST(ServiceManagerTest, LeavingAsksForItsTimeInMicroseconds) {
  EXPECT_THAT(StoppingLines(absl::Seconds(40)),
              HasSubstr("EXTEND_TIMEOUT_USEC=40000000\n"));
}

}  // namespace
}  // namespace encoderd
