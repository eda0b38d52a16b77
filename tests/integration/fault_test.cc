// What the system refuses (tests/support/faults.h): sockets, connections and
// the device. The error names the thing, nothing else is lost, and what comes
// next works. Files, threads and memory: fault_file_test.cc,
// fault_thread_test.cc, fault_memory_test.cc.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/fake_tokenizer.h"
#include "tests/support/faults.h"
#include "tests/support/held_port.h"
#include "tests/support/patience.h"
#include "tests/support/raw_http2.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using absl::StatusCode;

// No point is in the list without a test.
class EveryPointStrikes final : public ::testing::Environment {
  void TearDown() override {
    if (GTEST_FLAG_GET(filter) != "*") return;  // not the whole program
    for (int i = 0; i < static_cast<int>(FaultPoint::kCount); ++i) {
      const auto point = static_cast<FaultPoint>(i);
      EXPECT_GT(TimesStruck(point), 0) << NameOf(point);
    }
  }
};
[[maybe_unused]] const auto* const g_environment =
    ::testing::AddGlobalTestEnvironment(new EveryPointStrikes);

bool Answers(TestServer& server) {
  const auto stub = v1::Encoder::NewStub(server.NewChannel());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  v1::EmbedResponse response;
  const grpc::Status status =
      stub->Embed(&context, TextRequest({"a"}), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return status.ok();
}

// Starts on ports that are the test's alone, so that a socket which a failed
// start left open would fail the next one.
class FaultStartTest : public ::testing::Test {
 protected:
  FaultStartTest() {
    config_.listen = absl::StrCat("127.0.0.1:", grpc_.port());
    config_.http_listen = absl::StrCat("127.0.0.1:", http_.port());
  }
  absl::Status Start() const {
    return Server::Start(config_, nullptr).status();
  }
  // As Start, with a fault after this many calls.
  absl::Status Start(FaultPoint point, int error, int after) const {
    const ScopedFault fault(point, {.error = error, .after = after});
    return Start();
  }

  const HeldPort grpc_;
  const HeldPort http_;
  ServerConfig config_ = TestConfig();
};

TEST_F(FaultStartTest, AListeningSocketThatFailsIsNamedByItsPort) {
  const struct {
    FaultPoint point;
    int error;
    StatusCode code;
  } kCases[] = {
      {FaultPoint::kSocket, EMFILE, StatusCode::kResourceExhausted},
      {FaultPoint::kBind, EACCES, StatusCode::kFailedPrecondition},
      {FaultPoint::kListen, EADDRINUSE, StatusCode::kUnavailable},
      {FaultPoint::kSocketName, ENOBUFS, StatusCode::kResourceExhausted},
  };
  for (const auto& [point, error, code] : kCases) {
    SCOPED_TRACE(NameOf(point));
    // Another address would not help where the system has no more of something.
    const bool of_flag = code != StatusCode::kResourceExhausted;
    const auto message = [&, error = error](const char* flag,
                                            const std::string& address) {
      return absl::StrCat(of_flag ? flag : "", "cannot listen on ", address,
                          ": ", strerror(error));
    };
    EXPECT_THAT(Start(point, error, 0),
                IsError(code, message("--listen: ", config_.listen)));
    EXPECT_THAT(Start(point, error, 1),
                IsError(code, message("--http_listen: ", config_.http_listen)));
    EXPECT_THAT(Start(), IsOk());
  }
}

TEST_F(FaultStartTest, WithoutDescriptorsToWaitWithItDoesNotStart) {
  const std::string grpc = "cannot wait for connections: Too many open files";
  const std::string http = absl::StrCat(
      "cannot serve HTTP on ", config_.http_listen, ": Too many open files");
  const auto code = StatusCode::kResourceExhausted;
  EXPECT_THAT(Start(FaultPoint::kWatcher, EMFILE, 0), IsError(code, grpc));
  EXPECT_THAT(Start(FaultPoint::kWakeUp, EMFILE, 0), IsError(code, grpc));
  EXPECT_THAT(Start(FaultPoint::kWakeUp, EMFILE, 1), IsError(code, http));
  for (const int after : {0, 1}) {
    EXPECT_THAT(Start(FaultPoint::kWatch, ENOSPC, after),
                IsError(code, "cannot wait for connections: No space left"));
  }
  EXPECT_THAT(Start(), IsOk());
}

TEST(FaultTest, AConnectionThatCannotBeAcceptedYetWaits) {
  TestServer server;
  for (const int error : {EMFILE, ENFILE, ENOMEM, ECONNABORTED, EINTR}) {
    SCOPED_TRACE(strerror(error));
    const ScopedFault fault(FaultPoint::kAccept,
                            {.error = error, .times = 3, .thread = "accept"});
    EXPECT_TRUE(Answers(server));
  }
}

TEST(FaultTest, AConnectionOfHttpThatCannotBeAcceptedYetWaits) {
  TestServer server;
  for (const int error : {EMFILE, ENFILE, ENOMEM, ECONNABORTED, EINTR}) {
    SCOPED_TRACE(strerror(error));
    const ScopedFault fault(FaultPoint::kAccept,
                            {.error = error, .times = 3, .thread = "http"});
    EXPECT_EQ(server.Get("/healthz").first, 200);
  }
}

// What is kept of each connection: a second descriptor, and a place among those
// that are waited for.
TEST(FaultTest, AConnectionThatCannotBeKeptIsClosed) {
  TestServer server;
  ASSERT_TRUE(Answers(server));
  ASSERT_TRUE(Eventually([&] { return server.server().connections() == 0; }));
  for (const FaultPoint point : {FaultPoint::kDuplicate, FaultPoint::kWatch}) {
    SCOPED_TRACE(NameOf(point));
    {
      const ScopedFault fault(point, {.error = EMFILE, .thread = "accept"});
      EXPECT_TRUE(RawHttp2::IsClosedAtOnce(server.server().grpc_port()));
    }
    EXPECT_EQ(server.server().connections(), 0);
    EXPECT_TRUE(Answers(server));
    ASSERT_TRUE(Eventually([&] { return server.server().connections() == 0; }));
  }
}

TEST(FaultTest, AnHttpConnectionThatBreaksIsTheOnlyOne) {
  const std::pair<FaultPoint, int> kCases[] = {
      {FaultPoint::kReceive, ECONNRESET},
      {FaultPoint::kReceive, 0},
      {FaultPoint::kSend, EPIPE},
      {FaultPoint::kSend, ECONNRESET},
  };
  for (const auto& [point, error] : kCases) {
    SCOPED_TRACE(absl::StrCat(NameOf(point), ", error ", error));
    TestServer server;  // of which this is the only connection
    {
      const ScopedFault fault(point, {.error = error, .thread = "http"});
      EXPECT_EQ(server.Get("/healthz").first, 0);
    }
    EXPECT_EQ(server.Get("/healthz").first, 200);
  }
  TestServer server;
  for (const FaultPoint point : {FaultPoint::kReceive, FaultPoint::kSend}) {
    const ScopedFault fault(point,
                            {.error = EINTR, .times = 3, .thread = "http"});
    EXPECT_EQ(server.Get("/healthz").first, 200);
  }
}

TEST(FaultTest, ABatchThatFailsOnTheDeviceIsTheOnlyOne) {
  TestServer server;
  server.model().device().FailWhen([] { return Strikes(FaultPoint::kDevice); });
  v1::EmbedResponse response;
  {
    const ScopedFault fault(FaultPoint::kDevice, {.thread = Fault::kAnyThread});
    const RpcError error =
        ReadError(server.Embed(TextRequest({"a"}), &response));
    EXPECT_EQ(error.code, grpc::StatusCode::INTERNAL);
    EXPECT_EQ(error.reason, "DEVICE_FAULT");
    EXPECT_FALSE(error.metadata.at("error_id").empty());
  }
  EXPECT_TRUE(server.Embed(TextRequest({"a"}), &response).ok());
  EXPECT_FALSE(server.device_lost());
}

}  // namespace
}  // namespace encoderd
