#include "server/drainer.h"

#include <unistd.h>

#include <algorithm>

#include "absl/time/time.h"
#include "engine/base/start_thread.h"
#include "server/base/catch_all.h"
#include "server/base/log.h"
#include "server/base/steady_time.h"
#include "server/exit_codes.h"

namespace encoderd {
namespace {

// A signal this soon after the first is the same request: programs like
// `timeout` signal a process and then its group.
constexpr absl::Duration kOneWish = absl::Seconds(1);

}  // namespace

Drainer::~Drainer() {
  if (!thread_.joinable()) return;
  if (!begun_.HasBeenNotified()) begun_.Notify();
  thread_.join();
}

absl::Status Drainer::StartThread() {
  return CatchAll([this] {
    thread_ = encoderd::StartThread("drain", [this] {
      begun_.WaitForNotification();
      if (!wanted_) return;
      all_answered_ = server_->Drain();
      drained_ = true;
      events_->Wake();
    });
    return absl::OkStatus();
  });
}

bool Drainer::DrainUnlessHurried(bool signalled,
                                 absl::FunctionRef<bool()> wait_for_stop) {
  absl::Time first = signalled ? SteadyNow() : absl::InfiniteFuture();
  wanted_ = true;
  begun_.Notify();
  while (!drained_) {
    if (!wait_for_stop() || drained_) continue;
    first = std::min(first, SteadyNow());
    if (SteadyNow() - first < kOneWish) continue;
    Log(LogLevel::kWarning, "drain_cut_short",
        LogFields().Add("unanswered", server_->unanswered()));
    _exit(kExitHurried);
  }
  thread_.join();
  events_->NextStopExits();
  return all_answered_;
}

}  // namespace encoderd
