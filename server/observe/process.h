// What the system reports about this process, for the metrics process_*: read
// from /proc when a scrape asks. Thread-safe: plain functions.
#ifndef ENCODERD_SERVER_OBSERVE_PROCESS_H_
#define ENCODERD_SERVER_OBSERVE_PROCESS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace encoderd {

// 0 if the system does not report it, or has no descriptor free for its file.
struct ProcessFigures {
  double cpu_seconds = 0;         // user and system, of all threads
  double start_time_seconds = 0;  // since 1970
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t open_fds = 0;
  int64_t max_fds = 0;
  int64_t threads = 0;
};

ProcessFigures ReadProcess();

// Units of the kernel's files.
struct ProcUnits {
  double ticks_per_second = 100;
  int64_t page_bytes = 4096;
  double boot_seconds = 0;  // since 1970; 0: unknown
};

// /proc/PID/stat into `figures`, all but the descriptors. False, and nothing is
// changed, where it is not of that form.
bool ParseStat(absl::string_view stat, const ProcUnits& units,
               ProcessFigures* figures);
// The line `btime` of /proc/stat; 0: missing.
double ParseBootSeconds(absl::string_view stat);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_PROCESS_H_
