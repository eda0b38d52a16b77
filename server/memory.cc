#include "server/memory.h"

#include <unistd.h>

#include <cstdio>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "server/observe/log.h"

namespace encoderd {
namespace {

// 0 where it cannot be had.
[[maybe_unused]] int64_t ResidentBytes() {
  long long total = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  const int read = std::fscanf(file, "%lld %lld", &total, &resident);
  std::fclose(file);
  return read == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

void LookAtMemory([[maybe_unused]] TrimRule* rule) {
#ifdef __GLIBC__
  const int64_t before = ResidentBytes();
  if (!rule->Look(before)) return;
  malloc_trim(0);
  const int64_t after = ResidentBytes();
  rule->Trimmed(before, after);
  Log(LogLevel::kInfo, "memory_trimmed",
      LogFields().Add("before_bytes", before).Add("after_bytes", after));
#endif
}

}  // namespace encoderd
