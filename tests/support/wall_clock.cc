#include "tests/support/wall_clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace encoderd {

std::atomic<int64_t> g_wall_clock_ahead{0};

}  // namespace encoderd

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) {
    time->tv_sec += encoderd::g_wall_clock_ahead;
  }
  return result;
}
