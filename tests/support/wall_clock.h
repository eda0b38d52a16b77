// A wall clock that a test sets. Programs that link it read, through
// clock_gettime and gettimeofday of the C library, a wall clock that is ahead
// of the kernel's. A wait of the kernel until a wall time that was read here
// lasts as long as after a clock was set back.
#ifndef ENCODERD_TESTS_SUPPORT_WALL_CLOCK_H_
#define ENCODERD_TESTS_SUPPORT_WALL_CLOCK_H_

#include <atomic>
#include <cstdint>

namespace encoderd {

extern std::atomic<int64_t> g_wall_clock_ahead;  // seconds; 0 at first

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_WALL_CLOCK_H_
