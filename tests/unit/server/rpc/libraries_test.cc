#include "server/rpc/libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "encoderd/v1/encoder.pb.h"
#include "google/protobuf/stubs/common.h"
#include "grpc/support/log.h"
#include "tests/support/patience.h"

namespace encoderd {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr char kExperiments[] = "GRPC_EXPERIMENTS";

TEST(LibrariesTest, TheExperimentsOfTheEnvironmentStayAndOneIsOff) {
  ::unsetenv(kExperiments);
  PrepareLibraries();
  EXPECT_STREQ(std::getenv(kExperiments), "-tcp_read_chunks");
  ::setenv(kExperiments, "-event_engine_client", /*overwrite=*/1);
  PrepareLibraries();
  EXPECT_STREQ(std::getenv(kExperiments),
               "-event_engine_client,-tcp_read_chunks");
  ::unsetenv(kExperiments);
}

TEST(LibrariesTest, AMessageOfGrpcIsALineOfTheLog) {
  PrepareLibraries();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as gRPC does when it starts
  ::testing::internal::CaptureStderr();
  gpr_log(GPR_ERROR, "two\n%s", "lines");
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr(" level=warning event=grpc at=libraries_test.cc:"),
            EndsWith(" message=\"two\\nlines\"\n")));
  ::unsetenv(kExperiments);
}

// Callers can provoke such lines: there are few, and they count the others.
TEST(LibrariesTest, MessagesOfGrpcThatAreLeftOutAreCountedInTheNextLine) {
  PrepareLibraries();
  int said = 0;
  int written = 0;
  std::string line;
  EXPECT_TRUE(Eventually([&] {
    ::testing::internal::CaptureStderr();
    gpr_log(GPR_ERROR, "again");
    line = ::testing::internal::GetCapturedStderr();
    ++said;
    written += line.empty() ? 0 : 1;
    return absl::StrContains(line, "left_out=");
  }));
  EXPECT_GT(said, written);
  EXPECT_THAT(line, EndsWith(absl::StrCat(
                        " message=again left_out=", said - written, "\n")));
  ::unsetenv(kExperiments);
}

TEST(LibrariesTest, ATextThatIsNotUtf8WritesNothing) {
  if (GOOGLE_PROTOBUF_VERSION >= 4000000) {
    GTEST_SKIP() << "this version of Protobuf has no such switch";
  }
  PrepareLibraries();
  v1::EmbedRequest request;
  ::testing::internal::CaptureStderr();
  // The string `model`, of one byte.
  EXPECT_FALSE(request.ParseFromString("\x0a\x01\xff"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::unsetenv(kExperiments);
}

}  // namespace
}  // namespace encoderd
