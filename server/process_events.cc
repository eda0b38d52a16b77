#include "server/process_events.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/exit_codes.h"

namespace encoderd {
namespace {

// Those that end the process.
sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

ProcessEvents::ProcessEvents() {
  sigset_t heard = StopSignals();
  sigaddset(&heard, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &heard, nullptr);
  signal_fd_ = signalfd(-1, &heard, SFD_CLOEXEC);
  wake_fd_ = eventfd(0, EFD_CLOEXEC);
  if (signal_fd_ >= 0 && wake_fd_ >= 0) return;
  status_ = absl::ResourceExhaustedError(
      absl::StrCat("cannot listen for signals: ", std::strerror(errno)));
}

ProcessEvents::~ProcessEvents() {
  if (signal_fd_ >= 0) close(signal_fd_);
  if (wake_fd_ >= 0) close(wake_fd_);
}

void ProcessEvents::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof(one));
}

ProcessEvent ProcessEvents::Wait(absl::Duration tick) {
  const int tick_ms = tick == absl::InfiniteDuration()
                          ? -1
                          : static_cast<int>(absl::ToInt64Milliseconds(tick));
  pollfd fds[2] = {{signal_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  int ready = -1;
  while (ready < 0) ready = poll(fds, 2, tick_ms);
  if (ready == 0) return ProcessEvent::kTick;
  if (fds[0].revents != 0) {
    signalfd_siginfo taken = {};
    [[maybe_unused]] const ssize_t size =
        read(signal_fd_, &taken, sizeof(taken));
    if (taken.ssi_signo == SIGHUP) return ProcessEvent::kHangUp;
    if (taken.ssi_signo != 0) return ProcessEvent::kStop;
    return ProcessEvent::kWake;  // nothing could be read: look again
  }
  uint64_t taken = 0;
  [[maybe_unused]] const ssize_t size = read(wake_fd_, &taken, sizeof(taken));
  return ProcessEvent::kWake;
}

void ProcessEvents::NextStopExits() {
  struct sigaction action = {};
  action.sa_handler = [](int) { _exit(kExitHurried); };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace encoderd
