#include "client/cpp/encoderctl/signals.h"

#include <atomic>

namespace encoderd::ctl {
namespace {

// The handler runs on any thread, gRPC's own included, and others read.
std::atomic<int> g_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // or no handler may

void Remember(int signal) { g_signal = signal; }

}  // namespace

StopOnSignal::StopOnSignal() {
  g_signal = 0;
  struct sigaction action = {};
  action.sa_handler = Remember;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &interrupt_before_);
  sigaction(SIGTERM, &action, &terminate_before_);
}

StopOnSignal::~StopOnSignal() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
}

int StopOnSignal::Signal() { return g_signal; }

}  // namespace encoderd::ctl
