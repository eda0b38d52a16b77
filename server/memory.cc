#include "server/memory.h"

#include <unistd.h>

#include <cstdio>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "server/base/log.h"

namespace encoderd {
namespace {

// 0 if it is unavailable.
int64_t ResidentBytes() {
  long long total = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  const int read = std::fscanf(file, "%lld %lld", &total, &resident);
  std::fclose(file);
  return read == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

ProcessMemory ThisProcess() {
#ifdef __GLIBC__
  return {ResidentBytes, [] { malloc_trim(0); }};
#else
  return {ResidentBytes, nullptr};
#endif
}

void LookAtMemory(TrimRule* rule, const ProcessMemory& memory) {
  if (memory.trim == nullptr) return;
  const int64_t before = memory.resident_bytes();
  if (before <= 0 || !rule->Look(before)) return;
  memory.trim();
  const int64_t read = memory.resident_bytes();
  const int64_t after = read > 0 ? read : before;
  rule->Trimmed(before, after);
  if (after >= before) return;
  Log(LogLevel::kInfo, "memory_trimmed",
      LogFields().Add("before_bytes", before).Add("after_bytes", after));
}

}  // namespace encoderd
