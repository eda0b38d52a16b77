#include "server/run.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "engine/base/catch_all.h"
#include "engine/base/start_thread.h"
#include "engine/base/steady_time.h"
#include "server/base/log.h"
#include "server/base/version.h"
#include "server/flags.h"
#include "server/memory.h"
#include "server/process_limits.h"
#include "server/rpc/wire.h"
#include "server/service_manager.h"

namespace encoderd {
namespace {

// A signal this soon after the first is the same request: programs like
// `timeout` signal a process and then its group.
constexpr absl::Duration kOneWish = absl::Seconds(1);

// What leaving may take besides drain_delay and drain_timeout, before a service
// manager may kill the process; far more than the last words need.
constexpr absl::Duration kGoodbyePatience = absl::Seconds(10);

// What the main thread waits for: signals, and wake-ups by other threads.
class Events {
 public:
  // Blocks TERM, INT and HUP in this thread and, by inheritance, in all threads
  // that it starts; they arrive in WaitForSignal only.
  Events() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    sigset_t heard = signals_;
    sigaddset(&heard, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &heard, nullptr);
    signal_fd_ = signalfd(-1, &heard, SFD_CLOEXEC);
    news_fd_ = eventfd(0, EFD_CLOEXEC);
  }

  // False: signals cannot be received.
  bool ok() const { return signal_fd_ >= 0 && news_fd_ >= 0; }

  // From any thread.
  void Wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(news_fd_, &one, sizeof(one));
  }

  // From now on WaitForSignal returns memory above the current amount.
  void StartLookingAtMemory() {
    look_ms_ = static_cast<int>(absl::ToInt64Milliseconds(TrimRule::kLook));
    LookAtMemory(&trim_rule_, memory_);
  }

  // From now on the next TERM or INT ends the process at once, without further
  // output.
  void NextSignalExits() {
    struct sigaction action = {};
    action.sa_handler = [](int) { _exit(kExitHurried); };
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  }

  // Sets what HUP does, in WaitForSignal, from now on; it does nothing before.
  void OnHangUp(std::function<void()> what) { on_hang_up_ = std::move(what); }

  // Sleeps until TERM or INT came (true) or Wake was called (false).
  bool WaitForSignal() {
    for (;;) {
      const int signal = NextSignal();
      if (signal != SIGHUP) return signal != kNews;
      if (on_hang_up_ != nullptr) on_hang_up_();
    }
  }

 private:
  static constexpr int kNews = 0;  // not a signal, but a Wake

  int NextSignal() {
    pollfd fds[2] = {{signal_fd_, POLLIN, 0}, {news_fd_, POLLIN, 0}};
    for (int ready = 0; ready <= 0;) {
      ready = poll(fds, 2, look_ms_);
      if (ready == 0) LookAtMemory(&trim_rule_, memory_);
    }
    if (fds[0].revents != 0) {
      signalfd_siginfo taken = {};
      [[maybe_unused]] const ssize_t size =
          read(signal_fd_, &taken, sizeof(taken));
      return static_cast<int>(taken.ssi_signo);
    }
    uint64_t taken = 0;
    [[maybe_unused]] const ssize_t size = read(news_fd_, &taken, sizeof(taken));
    return kNews;
  }

  sigset_t signals_;  // that end the process
  std::function<void()> on_hang_up_;
  TrimRule trim_rule_;
  const ProcessMemory memory_ = ThisProcess();
  int look_ms_ = -1;  // never
  int signal_fd_ = -1;
  int news_fd_ = -1;
};

// Whether the cause may pass; what is wrong with flags, files and models has
// other codes, and stays.
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

// A thread, or the error.
template <typename Body>
absl::Status TryStart(const std::string& name, Body body, std::thread* thread) {
  return CatchAll([&] {
    *thread = StartThread(name, body);
    return absl::OkStatus();
  });
}

// Drains on a separate thread, so that the main one still receives signals.
// The thread exists from the start on: later there may be none to have.
class Drainer {
 public:
  Drainer(Server* server, Events* events) : server_(server), events_(events) {}
  ~Drainer() {
    if (!thread_.joinable()) return;
    if (!begun_.HasBeenNotified()) begun_.Notify();
    thread_.join();
  }

  absl::Status StartThread() {
    return TryStart(
        "drain",
        [this] {
          begun_.WaitForNotification();
          if (!wanted_) return;
          all_answered_ = server_->Drain();
          drained_ = true;
          events_->Wake();
        },
        &thread_);
  }

  // The result of Server::Drain. The second signal, at least kOneWish after the
  // first, ends the process at once. signalled: the first has come, now.
  bool DrainUnlessHurried(bool signalled) {
    absl::Time first = signalled ? SteadyNow() : absl::InfiniteFuture();
    wanted_ = true;
    begun_.Notify();
    while (!drained_) {
      if (!events_->WaitForSignal() || drained_) continue;
      first = std::min(first, SteadyNow());
      if (SteadyNow() - first < kOneWish) continue;
      Log(LogLevel::kWarning, "drain_cut_short",
          LogFields().Add("unanswered", server_->unanswered()));
      _exit(kExitHurried);
    }
    thread_.join();
    events_->NextSignalExits();
    return all_answered_;
  }

 private:
  Server* const server_;
  Events* const events_;
  absl::Notification begun_;
  bool wanted_ = false;  // before begun_
  bool all_answered_ = false;
  std::atomic<bool> drained_{false};
  std::thread thread_;
};

// The start and the end do not depend on whether anybody hears of them.
void Tell(const ServerConfig& config, absl::string_view lines) {
  const absl::Status status = TellServiceManager(config.notify_socket, lines);
  if (status.ok()) return;
  Log(LogLevel::kWarning, "notify_failed",
      LogFields().Add("message", status.message()));
}

std::string WithPort(const std::string& address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
}

// gRPC 1.51 sizes the buffers of a connection's next read by the bytes that
// came since its socket was last empty. A caller that never lets it be empty
// makes it allocate hundreds of megabytes, and past 2 GiB abort the process.
// Without this experiment, which is on by default, a read has a fixed limit.
// Before gRPC starts, and so before other threads.
void ReadInBoundedPieces() {
  constexpr char kName[] = "GRPC_EXPERIMENTS";
  const char* chosen = std::getenv(kName);
  const std::string others = chosen == nullptr ? "" : absl::StrCat(chosen, ",");
  ::setenv(kName, absl::StrCat(others, "-tcp_read_chunks").c_str(),
           /*overwrite=*/1);
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
              const std::string& revision) {
  signal(SIGPIPE, SIG_IGN);
  // A log that may not grow further loses lines, and ends nothing.
  signal(SIGXFSZ, SIG_IGN);
  // Until signals are received (Events), and later when a terminal closes, it
  // ends nothing.
  signal(SIGHUP, SIG_IGN);
  QuietProtobuf();
  ReadInBoundedPieces();
  auto config = ConfigFromFlags(argc, argv);
  if (!config.ok()) return StartFailed(config.status());
  const absl::Status room = CheckProcessLimits(*config);
  if (!room.ok()) return StartFailed(room);
  config->revision = revision;
  Events events;
  if (!events.ok()) {
    return StartFailed(absl::ResourceExhaustedError(
        absl::StrCat("cannot listen for signals: ", std::strerror(errno))));
  }
  Log(LogLevel::kInfo, "start",
      LogFields()
          .Add("version", kVersion)
          .Add("revision", revision)
          .Append(FlagsInUse().text()));

  std::atomic<bool> device_lost{false};
  auto server = Server::Start(*config, [&] {
    device_lost = true;
    events.Wake();
  });
  if (!server.ok()) return StartFailed(server.status());
  events.OnHangUp([&server, &config] {
    if (config->tls() || !config->bearer_token_file.empty()) {
      Log(LogLevel::kInfo, "reloading",
          LogFields().Add("message",
                          "SIGHUP rereads certificates and bearer tokens; "
                          "flags are read at start only: restart to change "
                          "them"));
      (*server)->ReloadSecretsSoon();
    } else {
      Log(LogLevel::kInfo, "nothing_to_reload",
          LogFields().Add("message",
                          "SIGHUP rereads certificates and bearer tokens, and "
                          "there are none; flags are read at start only: "
                          "restart to change them"));
    }
  });
  LogFields ports;
  ports.Add("grpc", WithPort(config->listen, (*server)->grpc_port()));
  if (!config->http_listen.empty()) {
    ports.Add("http", WithPort(config->http_listen, (*server)->http_port()));
  }
  Log(LogLevel::kInfo, "listening", ports);

  Drainer drainer(server->get(), &events);
  const absl::Status draining = drainer.StartThread();
  if (!draining.ok()) return StartFailed(draining);
  absl::Status load_status;
  std::atomic<bool> loaded{false};
  std::thread load;
  const absl::Status loading = TryStart(
      "load",
      [&] {
        load_status = (*server)->Load(loader);
        loaded = true;
        events.Wake();
      },
      &load);
  if (!loading.ok()) return StartFailed(loading);
  bool signalled = false;
  while (!signalled && !loaded) signalled = events.WaitForSignal();
  if (!loaded && (*server)->AbandonLoading()) {
    // Loading cannot be interrupted; nothing was accepted, nothing is lost.
    Log(LogLevel::kInfo, "stopped_while_loading");
    _exit(kExitOk);
  }
  load.join();
  if (!load_status.ok()) return StartFailed(load_status);
  events.StartLookingAtMemory();
  if (!signalled) Tell(*config, kReadyLines);

  while (!signalled && !device_lost) signalled = events.WaitForSignal();
  Log(LogLevel::kInfo, "draining",
      LogFields().Add("in_flight", (*server)->in_flight()));
  Tell(*config, StoppingLines(config->drain_delay + config->drain_timeout +
                              kGoodbyePatience));
  const bool all_answered = drainer.DrainUnlessHurried(signalled);
  Log(LogLevel::kInfo, "stopped");
  const int code = device_lost ? kExitDeviceLost : kExitOk;
  // Nobody waits for results any more; a device may never return.
  if (!all_answered) _exit(code);
  return code;
}

}  // namespace encoderd
