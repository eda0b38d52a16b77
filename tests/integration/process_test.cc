// The server as a process, with a fake engine: signals, ports, exit codes, log.
#include "tests/support/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "encoderd/v1/encoder.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/base/steady_time.h"
#include "server/exit_codes.h"
#include "tests/integration/served.h"
#include "tests/support/held_port.h"
#include "tests/support/loopback.h"
#include "tests/support/patience.h"
#include "tests/support/raw_http2.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_server.h"

namespace encoderd {
namespace {

using ::testing::HasSubstr;

int64_t Threads(pid_t pid) {
  using Folder = std::filesystem::directory_iterator;
  return std::distance(Folder(absl::StrCat("/proc/", pid, "/task")), Folder());
}

// A caller that connects and says nothing.
class RawConnection {
 public:
  explicit RawConnection(const std::string& address)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    ConnectLoopback(fd_, PortOf(address));
  }
  ~RawConnection() { close(fd_); }

 private:
  const int fd_;
};

TEST(ProcessTest, PortAnswersWhileTheModelLoads) {
  Served served("load_ms:3600000");
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckResponse response;
  ASSERT_TRUE(grpc::health::v1::Health::NewStub(served.channel)
                  ->Check(&context, {}, &response)
                  .ok());
  EXPECT_EQ(response.status(),
            grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(ReadError(served.Embed("x")).reason, "LOADING");
}

TEST(ProcessTest, TermWhileLoadingEndsAtOnce) {
  for (int number : {SIGTERM, SIGINT}) {
    Served served("load_ms:3600000");
    served.process.Signal(number);
    EXPECT_EQ(served.process.Wait(), kExitOk) << served.process.log();
    EXPECT_THAT(served.process.log(),
                HasSubstr("level=info event=stopped_while_loading"));
  }
}

TEST(ProcessTest, TermEndsAnIdleServerWithExitCodeZero) {
  for (int number : {SIGTERM, SIGINT}) {
    Served served("load_ms:0");
    ASSERT_NE(served.process.WaitForLine("event=serving"), "");
    ASSERT_TRUE(served.Embed("x").ok());
    served.process.Signal(number);
    EXPECT_EQ(served.process.Wait(), kExitOk) << served.process.log();
    EXPECT_THAT(served.process.log(), HasSubstr("unanswered=0"));
  }
}

// Signals at once after the first are the same wish.
TEST(ProcessTest, ASecondTermASecondLaterEndsTheDrainAtOnce) {
  Served served("load_ms:0", {"--drain_delay=1h"});
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  const absl::Time first = SteadyNow();
  do served.process.Signal(SIGTERM);
  while (served.process.Wait(absl::Milliseconds(20)) == -1000);
  EXPECT_GE(SteadyNow() - first, absl::Seconds(1));
  EXPECT_EQ(served.process.Wait(), kExitHurried);
  EXPECT_THAT(served.process.log(),
              HasSubstr("event=drain_cut_short unanswered=0"));
}

TEST(ProcessTest, ADeviceThatNeverAnswersDoesNotKeepTheProcess) {
  Served served("stuck_after_batches:1", {"--drain_timeout=0"});
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  grpc::Status status;
  std::thread caller([&] { status = served.Embed("x"); });
  EXPECT_TRUE(Eventually(
      [&] { return served.Sample("encoderd_input_tokens_count") == 1; }));
  served.process.Signal(SIGTERM);
  EXPECT_EQ(served.process.Wait(), kExitOk) << served.process.log();
  caller.join();
  EXPECT_EQ(ReadError(status).reason, "DRAINING");
  EXPECT_THAT(served.process.log(), HasSubstr("event=drained unanswered=1"));
}

TEST(ProcessTest, TheSecondProcessOnAPortFailsAndSaysWhatToDo) {
  Served first("load_ms:0");
  const struct {
    std::string flag;
    std::string address;
    std::string other;
    std::string way_out;
  } kCases[] = {
      {"--listen", first.address, "--http_listen=", "port 0 for a free one"},
      {"--http_listen", first.http_address, "--listen=127.0.0.1:0",
       "an empty one for no HTTP"},
  };
  for (const auto& test : kCases) {
    Process second({ENCODERD_FAKE_SERVER, "--model=fake=load_ms:0",
                    absl::StrCat(test.flag, "=", test.address), test.other});
    EXPECT_EQ(second.Wait(), kExitTryAgain);
    const std::string log = second.log();
    EXPECT_THAT(log, HasSubstr("event=start_failed"));
    EXPECT_THAT(log, HasSubstr(absl::StrCat(test.flag, ": cannot listen on ",
                                            test.address)));
    EXPECT_THAT(log, HasSubstr("Address already in use"));
    EXPECT_THAT(log,
                HasSubstr(absl::StrCat(
                    "sport = ", test.address.substr(test.address.rfind(':')))));
    EXPECT_THAT(log, HasSubstr(test.way_out));
  }
}

TEST(ProcessTest, AnAddressOfAnotherMachineIsNamed) {
  // 192.0.2.0/24 is for documents: no machine has it.
  Process process({ENCODERD_FAKE_SERVER, "--model=fake=load_ms:0",
                   "--listen=192.0.2.1:0", "--insecure", "--http_listen="});
  EXPECT_EQ(process.Wait(), kExitTryAgain);
  EXPECT_THAT(process.log(), HasSubstr("--listen: cannot listen on "
                                       "192.0.2.1:0: "));
  EXPECT_THAT(process.log(), HasSubstr("this host has no such address"));
}

TEST(ProcessTest, ASecretOnADiskThatDoesNotAnswerMayBeReadAtTheNextStart) {
  // Nothing is at the address 0: reading from it there is EIO.
  const std::string flag = "--bearer_token_file=/proc/self/mem";
  Process process(Arguments("load_ms:0", {flag}));
  EXPECT_EQ(process.Wait(), kExitTryAgain);
  EXPECT_THAT(process.log(),
              HasSubstr(absl::StrCat("event=start_failed code=UNAVAILABLE "
                                     "message=\"",
                                     flag, ": cannot be read: Input/output ")));
  Process missing(Arguments("load_ms:0", {"--bearer_token_file=/none"}));
  EXPECT_EQ(missing.Wait(), kExitStartFailed);
}

TEST(ProcessTest, ALostDeviceExitsForTheSupervisor) {
  // No load balancer is waited for: the device computes nothing any more.
  Served served("lost_after_batches:2", {"--drain_delay=1h"});
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  grpc::Status status;
  do {
    status = served.Embed("x");
  } while (status.ok());
  EXPECT_EQ(served.process.Wait(), kExitDeviceLost) << served.process.log();
  EXPECT_THAT(served.process.log(), HasSubstr("event=device_lost"));
}

// False: what the other model computes for `batch` was answered, and the
// process over, before the signal.
bool TermAfterALostDevice(absl::Duration batch) {
  Served served(
      "lost_after_batches:1",
      {"--drain_timeout=1h", absl::StrCat("--model=slow=batch_us:",
                                          absl::ToInt64Microseconds(batch))});
  EXPECT_NE(served.process.WaitForLine("event=serving"), "");
  grpc::Status status;
  std::thread caller([&] { status = served.Embed("x", kPatience, "slow"); });
  EXPECT_TRUE(Eventually([&] {
    return served.Sample("encoderd_input_tokens_count{model=\"slow\"}") == 1;
  }));
  while (served.Embed("x", kPatience, "fake").ok())
    ;
  EXPECT_NE(served.process.WaitForLine("event=draining"), "");
  absl::SleepFor(absl::Milliseconds(1200));
  const bool running = served.process.Wait(absl::ZeroDuration()) == -1000;
  served.process.Signal(SIGTERM);
  EXPECT_EQ(served.process.Wait(), kExitDeviceLost) << served.process.log();
  caller.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return running;
}

// What the other model computes is still answered.
TEST(ProcessTest, TheFirstTermAfterALostDeviceHurriesNothing) {
  EXPECT_TRUE(GivenEnoughTime([](absl::Duration time) {
    return TermAfterALostDevice(absl::Seconds(4) + time);
  }));
}

TEST(ProcessTest, ADeviceLostDuringTheStartMayBeBackAtTheNextOne) {
  Process process(Arguments("sessions:2,lost_after_batches:1"));
  EXPECT_EQ(process.Wait(), kExitTryAgain) << process.log();
  EXPECT_THAT(process.log(), HasSubstr("model 'fake': the device is lost: "));
}

// 200 calls in flight and a steady stream of new ones while TERM arrives at a
// random moment: each is answered, or refused by us with when to come back,
// until nobody listens any more.
TEST(ProcessTest, TermUnderLoadLosesNothing) {
  std::mt19937 random(20260131);
  for (int round = 0; round < Rounds(10); ++round) {
    Served served("batch_us:2000");
    ASSERT_NE(served.process.WaitForLine("event=serving"), "");
    std::atomic<int> ok{0}, refused{0}, closed{0}, wrong{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> callers;
    for (int i = 0; i < 200; ++i) {
      callers.emplace_back([&] {
        while (!stop) {
          const grpc::Status status = served.Embed("some text");
          if (status.ok()) {
            ++ok;
          } else if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
            if (status.error_details().empty()) {
              // Never "Socket closed": that call might have been computed.
              EXPECT_THAT(status.error_message(),
                          HasSubstr("failed to connect"));
              ++closed;
              return;
            }
            ++refused;
            if (!ReadError(status).retry_delay.has_value()) ++wrong;
          } else {
            ++wrong;
            ADD_FAILURE() << status.error_code() << " "
                          << status.error_message();
            return;
          }
        }
      });
    }
    while (ok == 0 && wrong == 0) absl::SleepFor(absl::Milliseconds(1));
    absl::SleepFor(absl::Milliseconds(random() % 200));
    served.process.Signal(SIGTERM);
    EXPECT_EQ(served.process.Wait(), kExitOk) << served.process.log();
    stop = true;
    for (std::thread& caller : callers) caller.join();
    EXPECT_GT(ok, 0);
    EXPECT_EQ(wrong, 0);
    EXPECT_THAT(served.process.log(), HasSubstr("unanswered=0"));
  }
}

// 200 descriptors for 400 callers that only connect: who was served is served,
// and new callers are once the others have gone.
TEST(ProcessTest, OutlivesAFloodOfConnections) {
  std::vector<std::string> arguments = {"/bin/sh", "-c",
                                        "ulimit -n 200; exec \"$@\"", "sh"};
  for (const std::string& argument : Arguments("load_ms:0")) {
    arguments.push_back(argument);
  }
  Process process(arguments);
  const std::string address =
      LogValue(process.WaitForLine("event=listening"), "grpc");
  ASSERT_NE(process.WaitForLine("event=serving"), "") << process.log();
  const auto embed = [](const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    context.set_wait_for_ready(true);
    v1::EmbedResponse response;
    const grpc::Status status = v1::Encoder::NewStub(channel)->Embed(
        &context, TextRequest({"x"}), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  };
  const auto old_channel = Connect(address);
  embed(old_channel);
  {
    std::vector<std::unique_ptr<RawConnection>> flood;
    for (int i = 0; i < 400; ++i) {
      flood.push_back(std::make_unique<RawConnection>(address));
    }
    embed(old_channel);
  }
  embed(Connect(address));
}

// Reflection is the library's own and blocks a thread for each open call.
TEST(ProcessTest, CallsOfReflectionThatNeverReadTakeABoundedNumberOfThreads) {
  constexpr int kCalls = 300;
  Served served("load_ms:0");
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  RawHttp2 deaf(PortOf(served.address));
  for (int i = 0; i < kCalls; ++i) {
    deaf.Call("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              "");
  }
  // Each is held, its headers before an answer that waits, or refused.
  for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(deaf.ReadHeaders());
  EXPECT_LT(Threads(served.process.pid()), kCalls / 2);
  EXPECT_TRUE(served.Embed("x").ok());
}

TEST(ProcessTest, AHangupEndsNothingAndSaysThatFlagsAreNotReadAgain) {
  Served served("load_ms:0");
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  served.process.Signal(SIGHUP);
  EXPECT_NE(served.process.WaitForLine("event=nothing_to_reload")
                .find("flags are read at start only"),
            std::string::npos);
  EXPECT_TRUE(served.Embed("x").ok());
  served.process.Signal(SIGTERM);
  EXPECT_EQ(served.process.Wait(), kExitOk);
}

TEST(ProcessTest, AHangupReadsTokensAgain) {
  const TempFolder folder;
  folder.Write("tokens",
               "a 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed"
               "4018e8f2223f8");
  Served served("load_ms:0", {"--bearer_token_file=" + folder.Path("tokens")});
  ASSERT_NE(served.process.WaitForLine("event=serving"), "");
  served.process.Signal(SIGHUP);
  EXPECT_THAT(served.process.WaitForLine("event=reloading"),
              HasSubstr("flags are read at start only: restart to change"));
  EXPECT_NE(served.process.WaitForLine("event=reloaded what=bearer_tokens"),
            "");
  folder.Write("tokens", "a secret");
  served.process.Signal(SIGHUP);
  const std::string line = served.process.WaitForLine("event=reload_failed");
  EXPECT_NE(line.find("line 1: field 2 must be the SHA-256"),
            std::string::npos);
  // Whoever asks again gets an answer again.
  served.process.Signal(SIGHUP);
  EXPECT_NE(served.process.WaitForLine("event=reload_failed"), "");
  EXPECT_EQ(served.process.log().find("secret"), std::string::npos);
  served.process.Signal(SIGTERM);
  EXPECT_EQ(served.process.Wait(), kExitOk);
}

TEST(ProcessTest, StartsAgainAfterKillNine) {
  const HeldPort port;
  const std::string address = absl::StrCat("127.0.0.1:", port.port());
  for (int i = 0; i < Rounds(10); ++i) {
    const TempFolder temporary;
    Process process({"/usr/bin/env", "TMPDIR=" + temporary.path(),
                     ENCODERD_FAKE_SERVER, "--model=fake=load_ms:0",
                     absl::StrCat("--listen=", address), "--http_listen="});
    const std::string listening = process.WaitForLine("event=listening");
    EXPECT_EQ(LogValue(listening, "grpc"), address) << process.log();
    process.Signal(SIGKILL);
    EXPECT_EQ(process.Wait(), -SIGKILL);
    EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
  }
}

}  // namespace
}  // namespace encoderd
