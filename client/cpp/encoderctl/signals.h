// Ctrl-C as a wish to stop: while a StopOnSignal lives, the first SIGINT or
// SIGTERM is remembered; a second one ends the process as usual. One at a time;
// what was remembered stays until the next.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_SIGNALS_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_SIGNALS_H_

#include <csignal>

namespace encoderd::ctl {

class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  bool wanted() const { return Signal() != 0; }

  // The signal that came while the last StopOnSignal lived; 0: none.
  static int Signal();

 private:
  struct sigaction interrupt_before_;
  struct sigaction terminate_before_;
};

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_SIGNALS_H_
