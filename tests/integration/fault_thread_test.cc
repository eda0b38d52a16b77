// Threads that the system does not start: each of ours is named by the error,
// and what was started before it ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/run.h"
#include "tests/support/fake_model.h"
#include "tests/support/faults.h"
#include "tests/support/held_port.h"
#include "tests/support/patience.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using absl::StatusCode;

std::string CannotStart(const std::string& thread) {
  return absl::StrCat("cannot start the thread ", thread, ": ",
                      strerror(EAGAIN));
}

TEST(FaultThreadTest, AServerWithoutAThreadDoesNotStart) {
  const TempFolder folder;
  folder.Write("tokens", absl::StrCat("search ", std::string(64, 'a')));
  const HeldPort grpc;
  const HeldPort http;
  ServerConfig config = TestConfig();
  config.listen = absl::StrCat("127.0.0.1:", grpc.port());
  config.http_listen = absl::StrCat("127.0.0.1:", http.port());
  config.bearer_token_file = folder.Path("tokens");
  int started = 0;
  for (const std::string thread : {"secrets", "accept", "http"}) {
    const ScopedFault fault(FaultPoint::kThread,
                            {.error = EAGAIN, .after = started++});
    EXPECT_THAT(Server::Start(config, nullptr).status(),
                IsError(StatusCode::kInternal, CannotStart(thread)));
  }
  EXPECT_THAT(Server::Start(config, nullptr).status(), IsOk());
}

TEST(FaultThreadTest, AModelWithoutAThreadIsNotServed) {
  FakeModelOptions fake;
  fake.sessions = 2;
  const std::vector<std::string> threads = {"tokenize-0", "tokenize-1", "side",
                                            "batch-0", "batch-1"};
  ServerConfig config = TestConfig();
  config.tokenizer_threads = 2;
  int started = 0;
  for (const std::string& thread : threads) {
    TestServer server(TestServer::NotLoaded(), fake, config);
    {
      const ScopedFault fault(FaultPoint::kThread,
                              {.error = EAGAIN, .after = started++});
      const absl::Status status = server.Load();
      EXPECT_THAT(status, IsError(StatusCode::kInternal, "model 'fake'"));
      EXPECT_THAT(status, IsError(StatusCode::kInternal, CannotStart(thread)));
    }
    EXPECT_FALSE(server.server().serving());
    EXPECT_EQ(server.Get("/readyz").first, 503);
  }
}

// The program, with a model that takes no time to load.
int RunProgram(
    int http_port, std::function<void()> while_loading = [] {}) {
  std::vector<std::string> arguments = {
      "encoderd", "--model=fake=folder", "--listen=127.0.0.1:0",
      absl::StrCat("--http_listen=127.0.0.1:", http_port)};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return RunServer(static_cast<int>(argv.size()), argv.data(),
                   [&](const std::string&, const ModelOptions& options)
                       -> absl::StatusOr<std::shared_ptr<const Model>> {
                     while_loading();
                     auto model = FakeModel::Load({}, options);
                     if (!model.ok()) return model.status();
                     return *model;
                   });
}

// A process calls RunServer once: this one here, and each test below in a
// its own process.
TEST(FaultThreadTest, AProcessThatCannotHearSignalsDoesNotStart) {
  static bool ran = false;
  if (std::exchange(ran, true)) GTEST_SKIP() << "this process had its run";
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  {
    const ScopedFault fault(FaultPoint::kSignals, {.error = EMFILE});
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(RunProgram(0), kExitTryAgain);
    EXPECT_THAT(
        ::testing::internal::GetCapturedStderr(),
        ::testing::HasSubstr("cannot listen for signals: Too many open files"));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

class FaultProcessDeathTest : public ::testing::Test {
 protected:
  FaultProcessDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(FaultProcessDeathTest, AProcessWithoutAThreadToLoadOnDoesNotStart) {
  const auto run = [] {
    // Those of the ports are there.
    const ScopedFault fault(FaultPoint::kThread, {.error = EAGAIN, .after = 2});
    std::exit(RunProgram(0));
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(kExitTryAgain),
              "event=start_failed .*cannot start the thread load");
}

TEST_F(FaultProcessDeathTest, AProcessWithoutAThreadToLeaveOnLeavesAllTheSame) {
  const auto run = [] {
    const HeldPort http;
    // Started where the signal is blocked, as all threads of the server are.
    const auto end_once_it_serves = [&http] {
      std::thread([port = http.port()] {
        Eventually(
            [&] { return TestServer::GetFrom(port, "/readyz").first == 200; });
        kill(getpid(), SIGTERM);
      }).detach();
    };
    const ScopedFault fault(FaultPoint::kThread, {.error = EAGAIN, .after = 3});
    std::exit(RunProgram(http.port(), end_once_it_serves));
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(kExitOk),
              "event=drain_without_thread .*thread drain.*event=stopped");
}

}  // namespace
}  // namespace encoderd
