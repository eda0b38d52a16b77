#include "server/run.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/cgroup.h"
#include "engine/base/start_thread.h"
#include "server/base/catch_all.h"
#include "server/base/log.h"
#include "server/base/version.h"
#include "server/drainer.h"
#include "server/exit_codes.h"
#include "server/exit_within.h"
#include "server/flags.h"
#include "server/memory.h"
#include "server/process_events.h"
#include "server/process_limits.h"
#include "server/rpc/libraries.h"
#include "server/service_manager.h"

namespace encoderd {
namespace {

// What leaving may take besides drain_delay and drain_timeout, before a service
// manager may kill the process; far more than the last words need.
constexpr absl::Duration kGoodbyePatience = absl::Seconds(10);

// Time for the last spans, and for libraries to end their threads: one of
// gRPC's may poll for ten seconds after a caller was slow to read.
constexpr absl::Duration kExitPatience = absl::Seconds(3);

// Whether the cause may be temporary; what is wrong with flags, files and
// models has other codes, and stays.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsInternal(status);
}

// The exit code.
int StartFailed(const absl::Status& status) {
  Log(LogLevel::kError, "start_failed",
      LogFields()
          .Add("code", absl::StatusCodeToString(status.code()))
          .Add("message", status.message()));
  return MayPass(status) ? kExitTryAgain : kExitStartFailed;
}

// What the main thread does from the start to the end: it waits, and meanwhile
// rereads secrets on HUP and returns memory.
class MainThread {
 public:
  // All outlive this.
  MainThread(const ServerConfig& config, Server* server, ProcessEvents* events)
      : config_(config), server_(server), events_(events) {}

  // From now on WaitForStop returns memory above the current amount.
  void StartLookingAtMemory() {
    tick_ = TrimRule::kLook;
    LookAtMemory(&trim_rule_, memory_);
  }

  // Sleeps until TERM or INT came (true) or the events were woken (false).
  bool WaitForStop() {
    for (;;) {
      switch (events_->Wait(tick_)) {
        case ProcessEvent::kStop:
          return true;
        case ProcessEvent::kWake:
          return false;
        case ProcessEvent::kHangUp:
          HangUp();
          break;
        case ProcessEvent::kTick:
          LookAtMemory(&trim_rule_, memory_);
          break;
      }
    }
  }

 private:
  void HangUp() {
    if (config_.tls() || !config_.bearer_token_file.empty()) {
      Log(LogLevel::kInfo, "reloading",
          LogFields().Add("message",
                          "SIGHUP rereads certificates and bearer tokens; "
                          "flags are read at start only: restart to change "
                          "them"));
      server_->ReloadSecretsSoon();
    } else {
      Log(LogLevel::kInfo, "nothing_to_reload",
          LogFields().Add("message",
                          "SIGHUP rereads certificates and bearer tokens, and "
                          "there are none; flags are read at start only: "
                          "restart to change them"));
    }
  }

  const ServerConfig& config_;
  Server* const server_;
  ProcessEvents* const events_;
  TrimRule trim_rule_;
  const ProcessMemory memory_ = ThisProcess();
  absl::Duration tick_ = absl::InfiniteDuration();
};

// Loads on a separate thread, so that this one still receives signals. Returns
// whether TERM or INT came meanwhile: the process then ends here, unless calls
// were admitted, which are still to be answered. Errors: those of Server::Load,
// and INTERNAL if the thread cannot be started.
absl::StatusOr<bool> LoadOrLeave(const ModelLoader& loader, Server* server,
                                 ProcessEvents* events,
                                 MainThread* main_thread) {
  absl::Status status;
  std::atomic<bool> loaded{false};
  std::thread load;
  const absl::Status loading = CatchAll([&] {
    const int64_t memory_limit_bytes = MemoryLimitBytes();
    load = StartThread("load", [&, memory_limit_bytes] {
      status = server->Load(loader, memory_limit_bytes);
      loaded = true;
      events->Wake();
    });
    return absl::OkStatus();
  });
  if (!loading.ok()) return loading;
  bool signalled = false;
  while (!signalled && !loaded) signalled = main_thread->WaitForStop();
  if (!loaded && server->AbandonLoading()) {
    // Loading cannot be interrupted; nothing was accepted, nothing is lost.
    Log(LogLevel::kInfo, "stopped_while_loading");
    _exit(kExitOk);
  }
  load.join();
  if (!status.ok()) return status;
  return signalled;
}

// The start and the end do not depend on whether anybody hears of them.
void Tell(const std::string& notify_socket, absl::string_view lines) {
  const absl::Status status = TellServiceManager(notify_socket, lines);
  if (status.ok()) return;
  Log(LogLevel::kWarning, "notify_failed",
      LogFields().Add("message", status.message()));
}

std::string WithPort(const std::string& address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
}

void LogListening(const ServerConfig& config, const Server& server) {
  LogFields ports;
  ports.Add("grpc", WithPort(config.listen, server.grpc_port()));
  if (!config.http_listen.empty()) {
    ports.Add("http", WithPort(config.http_listen, server.http_port()));
  }
  Log(LogLevel::kInfo, "listening", ports);
}

// A standard descriptor that is closed (2>&-) would become one of ours or of
// gRPC's, and lines of the log would be written to it.
void OccupyClosedDescriptors() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(standard, F_GETFD) != -1 || errno != EBADF) continue;
    if (open("/dev/null", O_RDWR) == standard) continue;
    constexpr char kWhy[] =
        "level=error event=start_failed message=\"a standard descriptor is "
        "closed, and /dev/null cannot be opened in its place\"\n";
    [[maybe_unused]] const ssize_t size =
        write(STDERR_FILENO, kWhy, sizeof(kWhy) - 1);
    _exit(kExitStartFailed);
  }
}

// gRPC opens descriptors as its library is loaded, which precedes main.
__attribute__((section(".preinit_array"),
               used)) void (*const kFirst)() = OccupyClosedDescriptors;

}  // namespace

int RunServer(int argc, char** argv, const ModelLoader& loader,
              const BuildInfo& build) {
  signal(SIGPIPE, SIG_IGN);
  // A log that may not grow further loses lines, and ends nothing.
  signal(SIGXFSZ, SIG_IGN);
  // Until signals are received (ProcessEvents), and later when a terminal
  // closes, it ends nothing.
  signal(SIGHUP, SIG_IGN);
  PrepareLibraries();
  auto config = ConfigFromFlags(argc, argv);
  if (!config.ok()) return StartFailed(config.status());
  const absl::Status room = CheckProcessLimits(*config);
  if (!room.ok()) return StartFailed(room);
  const std::string notify_socket = ServiceManagerSocket();
  ProcessEvents events;
  if (!events.status().ok()) return StartFailed(events.status());
  Log(LogLevel::kInfo, "start",
      LogFields()
          .Add("version", kVersion)
          .Add("revision", build.revision)
          .Append(FlagsInUse().text()));

  std::atomic<bool> device_lost{false};
  auto server = Server::Start(
      *config,
      [&] {
        device_lost = true;
        events.Wake();
      },
      build);
  if (!server.ok()) return StartFailed(server.status());
  LogListening(*config, **server);

  Drainer drainer(server->get(), &events);
  const absl::Status draining = drainer.StartThread();
  if (!draining.ok()) return StartFailed(draining);
  MainThread main_thread(*config, server->get(), &events);
  const absl::StatusOr<bool> leaving =
      LoadOrLeave(loader, server->get(), &events, &main_thread);
  if (!leaving.ok()) return StartFailed(leaving.status());
  bool signalled = *leaving;
  main_thread.StartLookingAtMemory();
  if (!signalled) Tell(notify_socket, kReadyLines);

  while (!signalled && !device_lost) signalled = main_thread.WaitForStop();
  Log(LogLevel::kInfo, "draining",
      LogFields().Add("in_flight", (*server)->in_flight()));
  Tell(notify_socket, StoppingLines(config->drain_delay +
                                    config->drain_timeout + kGoodbyePatience));
  const bool all_answered = drainer.DrainUnlessHurried(
      signalled, [&main_thread] { return main_thread.WaitForStop(); });
  Log(LogLevel::kInfo, "stopped");
  const int code = device_lost ? kExitDeviceLost : kExitOk;
  // Nobody waits for results any more; a device may never return.
  if (!all_answered) _exit(code);
  ExitWithin(kExitPatience, code);
  return code;
}

}  // namespace encoderd
