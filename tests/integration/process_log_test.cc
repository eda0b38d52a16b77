// What the server as a process writes to standard error, and what it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "server/run.h"
#include "tests/integration/served.h"
#include "tests/support/raw_http2.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What a caller wrote into a header stays within a line of ours.
TEST(ProcessLogTest, AHeaderCannotForgeALineOfTheLog) {
  Served served("load_ms:0");
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  RawHttp2 caller(PortOf(served.address));
  caller.Call("/encoderd.v1.Encoder/ListModels", "", 0,
              {{"grpc-timeout", "1\nts=x level=error event=forged"}});
  const std::string line = served.process.WaitForLine("forged");
  EXPECT_THAT(line, HasSubstr("event=grpc"));
  EXPECT_THAT(line, HasSubstr("\\nts=x level=error event=forged"));
  EXPECT_TRUE(served.Embed("x").ok());
}

// Whatever is logged meanwhile: nobody waits for a reader of the log.
TEST(ProcessLogTest, ALogThatNobodyReadsHoldsNobodyUp) {
  Served served("load_ms:0");
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  const auto lost = [&] {
    return TestServer::Sample(
        TestServer::GetFrom(PortOf(served.http_address), "/metrics").second,
        "encoderd_log_lines_lost_total");
  };
  // "throw" is logged; a pipe takes some hundred such lines.
  for (int i = 0; i < 5000 && lost() == 0; ++i) {
    EXPECT_FALSE(served.Embed("throw").ok());
  }
  EXPECT_GT(lost(), 0);
  EXPECT_TRUE(served.Embed("x").ok());
}

TEST(ProcessLogTest, TheLogHoldsNoInput) {
  Served served("batch_us:1000");
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  const std::string canary = "canary-7f3a";
  EXPECT_TRUE(served.Embed(canary).ok());
  EXPECT_FALSE(served.Embed(canary + std::string(600, 'x')).ok());
  // One that is late; a stalled caller may find its answer there all the same.
  while (served.Embed(canary, absl::Microseconds(1)).ok()) {
  }
  grpc::ClientContext context;
  v1::EmbedRequest request = TextRequest({canary});
  request.set_model(canary);
  request.set_request_id(canary);
  v1::EmbedResponse response;
  EXPECT_FALSE(v1::Encoder::NewStub(served.channel)
                   ->Embed(&context, request, &response)
                   .ok());
  EXPECT_FALSE(served.Embed("throw").ok());  // logged, with an error_id
  served.process.Signal(SIGTERM);
  EXPECT_EQ(served.process.Wait(), kExitOk);
  EXPECT_THAT(served.process.log(), HasSubstr("error_id="));
  EXPECT_THAT(served.process.log(), Not(HasSubstr("canary")));
}

}  // namespace
}  // namespace encoderd
