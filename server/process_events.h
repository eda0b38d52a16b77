// What the main thread waits for: signals, and wakes by other threads.
//
// One per process, made in the main thread before any other thread starts.
// Wake is thread-safe; everything else is for the main thread alone.
#ifndef ENCODERD_SERVER_PROCESS_EVENTS_H_
#define ENCODERD_SERVER_PROCESS_EVENTS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace encoderd {

enum class ProcessEvent {
  kStop,    // TERM or INT came
  kHangUp,  // HUP came
  kWake,    // another thread called Wake
  kTick,    // nothing of these, for as long as Wait was told
};

class ProcessEvents {
 public:
  // Blocks TERM, INT and HUP in this thread and, by inheritance, in all threads
  // that it starts; they arrive in Wait only. They stay blocked at its end.
  ProcessEvents();
  ~ProcessEvents();
  ProcessEvents(const ProcessEvents&) = delete;
  ProcessEvents& operator=(const ProcessEvents&) = delete;

  // RESOURCE_EXHAUSTED: signals cannot be received; call nothing else then.
  const absl::Status& status() const { return status_; }

  // From any thread: Wait returns kWake, once for all calls since the last.
  void Wake();

  // Sleeps until something happens, or for `tick`, in whole milliseconds;
  // infinite: without a tick. A signal goes before a wake.
  ProcessEvent Wait(absl::Duration tick);

  // From now on the next TERM or INT ends the process at once, with
  // kExitHurried and without further output; also one that has come and that
  // Wait has not returned. HUP stays blocked.
  void NextStopExits();

 private:
  int signal_fd_ = -1;
  int wake_fd_ = -1;
  absl::Status status_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PROCESS_EVENTS_H_
