// Threads that the system does not start: each of ours is named by the error,
// and what was started before it ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/exit_codes.h"
#include "server/process_limits.h"
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
// separate one.
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

// What RunProgram's server asks for.
int Probed() {
  ServerConfig config;
  config.models.resize(1);
  return LeastThreads(config,
                      static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(LeastThreadsTest, CountsOursAndAnEstimateOfThoseOfGrpc) {
  ServerConfig config;
  config.models.resize(1);
  EXPECT_EQ(LeastThreads(config, 2), 5 + 12 + 1 + 2 + 2 + 1);
  EXPECT_EQ(LeastThreads(config, 64), LeastThreads(config, 2));
  EXPECT_EQ(LeastThreads(config, 0), 5 + 12 + 1 + 2 + 1);
  config.http_listen = "";
  EXPECT_EQ(LeastThreads(config, 0), 4 + 12 + 1 + 2 + 1);
  config.http_listen = "127.0.0.1:0";
  config.models.resize(3);
  config.threads = 8;
  config.tokenizer_threads = 4;
  EXPECT_EQ(LeastThreads(config, 2), 5 + 12 + 1 + 3 * (8 + 4 + 1));
}

TEST_F(FaultProcessDeathTest, AProcessThatMayHaveTooFewThreadsDoesNotStart) {
  for (const int there : {0, 7, Probed() - 1}) {
    const auto run = [there] {
      const ScopedFault fault(FaultPoint::kThread,
                              {.error = EAGAIN, .after = there});
      std::exit(RunProgram(0));
    };
    EXPECT_EXIT(run(), ::testing::ExitedWithCode(kExitTryAgain),
                absl::StrCat("event=start_failed code=RESOURCE_EXHAUSTED "
                             "message=\"this process can start only ",
                             there, " more threads; the server needs at least ",
                             Probed(), ".*TasksMax"));
  }
}

TEST_F(FaultProcessDeathTest, AProcessWithoutAThreadToLoadOnDoesNotStart) {
  // Those of the ports are there, and then that to drain on.
  for (const auto& [name, there] :
       {std::pair("drain", Probed() + 2), std::pair("load", Probed() + 3)}) {
    const auto run = [there = there] {
      const ScopedFault fault(FaultPoint::kThread,
                              {.error = EAGAIN, .after = there});
      std::exit(RunProgram(0));
    };
    EXPECT_EXIT(
        run(), ::testing::ExitedWithCode(kExitTryAgain),
        absl::StrCat("event=start_failed .*cannot start the thread ", name));
  }
}

TEST_F(FaultProcessDeathTest, AProcessThatMayOpenFewFilesDoesNotStart) {
  const auto run = [] {
    const rlimit few = {31, 31};
    setrlimit(RLIMIT_NOFILE, &few);
    std::exit(RunProgram(0));
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(kExitTryAgain),
              "event=start_failed code=RESOURCE_EXHAUSTED message=\"this "
              "process may open 31 files; the server needs at least 32");
}

// Threads are had at the start, so that the end needs none.
TEST_F(FaultProcessDeathTest, AProcessThatGetsNoMoreThreadsStillLeaves) {
  const auto run = [] {
    const HeldPort http;
    // Started where the signal is blocked, as all threads of the server are.
    const auto end_once_it_serves = [&http] {
      std::thread([port = http.port()] {
        Eventually(
            [&] { return TestServer::GetFrom(port, "/readyz").first == 200; });
        // To the end of the process.
        static const auto* const fault =
            new ScopedFault(FaultPoint::kThread, {.error = EAGAIN,
                                                  .times = INT_MAX,
                                                  .thread = Fault::kAnyThread,
                                                  .may_miss = true});
        EXPECT_NE(fault, nullptr);
        kill(getpid(), SIGTERM);
      }).detach();
    };
    std::exit(RunProgram(http.port(), end_once_it_serves));
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(kExitOk), "event=stopped");
}

}  // namespace
}  // namespace encoderd
