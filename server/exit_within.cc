#include "server/exit_within.h"

#include <unistd.h>

#include "absl/time/clock.h"
#include "engine/base/start_thread.h"

namespace encoderd {

void ExitWithin(absl::Duration patience, int code) {
  try {
    StartThread("exit", [patience, code] {
      absl::SleepFor(patience);
      _exit(code);
    }).detach();
  } catch (...) {  // no memory, or no more threads
  }
}

}  // namespace encoderd
