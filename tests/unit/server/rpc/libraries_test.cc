#include "server/rpc/libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "encoderd/v1/encoder.pb.h"
#include "google/protobuf/stubs/common.h"
#include "grpc/support/log.h"

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
