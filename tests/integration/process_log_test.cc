// What the server as a process writes to standard error, and what it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/cgroup.h"
#include "server/exit_codes.h"
#include "tests/integration/served.h"
#include "tests/support/raw_http2.h"
#include "tests/support/temp_folder.h"

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

// The server has that of this test.
TEST(ProcessLogTest, TheMemoryLimitIsThatOfTheProcesssControlGroup) {
  const int64_t limit = MemoryLimitBytes();
  // A queue full of Encode would need 17 terabytes.
  Served served("hidden_size:1024", {"--max_queue_tokens=4294967296"});
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  served.process.Signal(SIGTERM);
  EXPECT_EQ(served.process.Wait(), kExitOk) << served.process.log();
  if (limit == kNoMemoryLimit) {
    EXPECT_THAT(served.process.log(), Not(HasSubstr("small_memory_limit")));
    GTEST_SKIP() << "no memory limit here, of which it would warn";
  }
  EXPECT_THAT(served.process.log(),
              HasSubstr(absl::StrCat(
                  "event=small_memory_limit limit_bytes=", limit, " ")));
}

// Whatever is logged meanwhile: nobody waits for a reader of the log.
TEST(ProcessLogTest, ALogThatNobodyReadsHoldsNobodyUp) {
  Served served("load_ms:0");
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  const auto lost = [&] {
    return served.Sample("encoderd_log_lines_lost_total");
  };
  // A HUP is logged; a pipe takes some hundred such lines.
  for (int i = 0; i < 5000 && lost() == 0; ++i) {
    served.process.Signal(SIGHUP);
    EXPECT_TRUE(served.Embed("x").ok());
  }
  const double before = lost();
  EXPECT_GT(before, 0);
  // "throw" is logged by the call's thread.
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(served.Embed("throw").ok());
  EXPECT_GE(lost(), before + 3);
  EXPECT_TRUE(served.Embed("x").ok());
}

// Else lines of the log would go to whatever opens next.
TEST(ProcessLogTest, ClosedStandardDescriptorsAreOccupied) {
  Process process({"/bin/sh", "-c",
                   "exec " ENCODERD_FAKE_SERVER
                   " --model=fake=load_ms:0 --listen=127.0.0.1:0"
                   " --http_listen= <&- >&- 2>&-"});
  EXPECT_EQ(process.WaitForLine("event="), "");
  for (const char* standard : {"0", "1", "2"}) {
    const std::string link =
        absl::StrCat("/proc/", process.pid(), "/fd/", standard);
    EXPECT_TRUE(Eventually([&] {
      std::error_code error;
      return std::filesystem::read_symlink(link, error) == "/dev/null";
    })) << standard;
  }
}

TEST(ProcessLogTest, FewFileDescriptorsAreAWarningWithTheRemedy) {
  Process process({"/bin/sh", "-c",
                   "ulimit -n 300 && exec " ENCODERD_FAKE_SERVER
                   " --model=fake=load_ms:0 --max_connections=1000"
                   " --listen=127.0.0.1:0 --http_listen="});
  const std::string line = process.WaitForLine("event=fewer_connections");
  EXPECT_EQ(LogValue(line, "used"), "100");
  EXPECT_THAT(line, HasSubstr("raise the limit of file descriptors to 2100 "
                              "(systemd: LimitNOFILE="));
}

// In every text and name that the callers below send, their token included.
constexpr char kCanary[] = "canary-7f3a";
// SHA-256 of it.
constexpr char kCanaryHash[] =
    "59fb5173e179d3563ef4f73f8dbcb3fab16ea4e1d6625e5d1408ddc070ac513d";

// A caller with `token`; empty: without one.
class Talker {
 public:
  Talker(const Served& served, const std::string& token)
      : stub_(v1::Encoder::NewStub(served.channel)), token_(token) {}

  std::unique_ptr<grpc::ClientContext> Context(
      absl::Duration timeout = kPatience) const {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    if (!token_.empty()) {
      context->AddMetadata("authorization", "Bearer " + token_);
    }
    return context;
  }
  grpc::Status Embed(const v1::EmbedRequest& request,
                     absl::Duration timeout = kPatience) const {
    v1::EmbedResponse response;
    return stub_->Embed(Context(timeout).get(), request, &response);
  }
  template <typename Request>
  grpc::Status Call(const std::vector<std::string>& texts) const {
    Request request;
    for (const std::string& text : texts) request.add_inputs()->set_text(text);
    const auto context = Context();
    if constexpr (std::is_same_v<Request, v1::EncodeRequest>) {
      v1::EncodeResponse response;
      return stub_->Encode(context.get(), request, &response);
    } else {
      v1::TokenizeResponse response;
      return stub_->Tokenize(context.get(), request, &response);
    }
  }
  // How many of the requests were answered with vectors.
  int Stream(const std::vector<v1::EmbedRequest>& requests) const {
    const auto context = Context();
    const auto stream = stub_->EmbedStream(context.get());
    for (const v1::EmbedRequest& request : requests) stream->Write(request);
    stream->WritesDone();
    int answered = 0;
    v1::EmbedResponse response;
    while (stream->Read(&response)) answered += !response.has_error();
    stream->Finish();
    return answered;
  }

 private:
  const std::unique_ptr<v1::Encoder::Stub> stub_;
  const std::string token_;
};

// Says it in every way that is answered, refused, late or fails.
void SayTheCanary(const Served& served) {
  const std::string canary = kCanary;
  const std::string too_long = canary + std::string(600, 'x');
  const Talker caller(served, canary);
  EXPECT_TRUE(caller.Embed(TextRequest({canary})).ok());
  EXPECT_FALSE(caller.Embed(TextRequest({too_long})).ok());
  // One that is late; a stalled caller may find its answer there all the same.
  while (caller.Embed(TextRequest({canary}), absl::Microseconds(1)).ok()) {
  }
  v1::EmbedRequest named = TextRequest({canary});
  named.set_model(canary);
  named.set_request_id(canary);
  EXPECT_FALSE(caller.Embed(named).ok());
  v1::EmbedRequest prompted = TextRequest({canary});
  prompted.mutable_options()->set_prompt_name(canary);
  EXPECT_FALSE(caller.Embed(prompted).ok());
  EXPECT_FALSE(caller.Embed(TextRequest({"throw"})).ok());  // and is logged

  EXPECT_TRUE(caller.Call<v1::EncodeRequest>({canary}).ok());
  EXPECT_FALSE(caller.Call<v1::EncodeRequest>({canary, too_long}).ok());
  EXPECT_TRUE(caller.Call<v1::TokenizeRequest>({canary, too_long}).ok());
  EXPECT_FALSE(caller.Call<v1::TokenizeRequest>({canary, ""}).ok());

  v1::EmbedRequest good = TextRequest({canary});
  good.set_request_id(canary);
  v1::EmbedRequest bad = TextRequest({too_long});
  bad.set_request_id(canary + "-2");
  EXPECT_EQ(caller.Stream({good, bad, named, TextRequest({canary})}), 1);

  for (const std::string& token : {canary + "-wrong", std::string()}) {
    const Talker stranger(served, token);
    EXPECT_EQ(stranger.Embed(TextRequest({canary})).error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(stranger.Stream({good}), 0);
  }
}

class CanaryTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CanaryTest, TheLogHoldsNoInputAndNoToken) {
  setenv("GRPC_VERBOSITY", GetParam(), 1);  // the server's, too
  const TempFolder folder;
  folder.Write("tokens", absl::StrCat("caller ", kCanaryHash));
  Served served("batch_us:1000",
                {"--bearer_token_file=" + folder.Path("tokens")});
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  SayTheCanary(served);
  served.process.Signal(SIGTERM);
  EXPECT_EQ(served.process.Wait(), kExitOk);
  unsetenv("GRPC_VERBOSITY");
  EXPECT_THAT(served.process.log(), HasSubstr("error_id="));
  EXPECT_THAT(served.process.log(), Not(HasSubstr("canary")));
}

INSTANTIATE_TEST_SUITE_P(Verbosities, CanaryTest,
                         ::testing::Values("ERROR", "DEBUG"));

}  // namespace
}  // namespace encoderd
