// Drains on a separate thread, so that the main one still receives signals.
// For the main thread alone.
#ifndef ENCODERD_SERVER_DRAINER_H_
#define ENCODERD_SERVER_DRAINER_H_

#include <atomic>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "server/process_events.h"
#include "server/server.h"

namespace encoderd {

class Drainer {
 public:
  // Both outlive this.
  Drainer(Server* server, ProcessEvents* events)
      : server_(server), events_(events) {}
  ~Drainer();
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  // Call it at the start of the process: at its end there may be no thread to
  // have. INTERNAL if the thread cannot be started.
  absl::Status StartThread();

  // Drains, and returns the result of Server::Drain. A second TERM or INT, at
  // least a second after the first, ends the process at once with kExitHurried;
  // so does any that comes after the draining. signalled: the first came just
  // now. wait_for_stop: sleeps until TERM or INT came (true) or somebody woke
  // `events` (false). Call it once, after StartThread.
  bool DrainUnlessHurried(bool signalled,
                          absl::FunctionRef<bool()> wait_for_stop);

 private:
  Server* const server_;
  ProcessEvents* const events_;
  absl::Notification begun_;
  bool wanted_ = false;  // before begun_
  bool all_answered_ = false;
  std::atomic<bool> drained_{false};
  std::thread thread_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_DRAINER_H_
