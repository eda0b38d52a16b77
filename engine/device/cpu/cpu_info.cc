#include "engine/device/cpu/cpu_info.h"

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

#include "engine/device/cpu/cgroup.h"

namespace encoderd {
namespace cpu {
namespace {

int32_t ReadInt(const std::string& path, int32_t otherwise) {
  std::ifstream file(path);
  int32_t value = 0;
  return file >> value ? value : otherwise;
}

}  // namespace

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
  }
  return "unknown";
}

Isa DetectIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return Isa::kPortable;
  if (!__builtin_cpu_supports("avx512f") ||
      !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl"))
    return Isa::kAvx2;
  return __builtin_cpu_supports("avx512bf16") ? Isa::kAvx512Bf16 : Isa::kAvx512;
#else
  return Isa::kPortable;
#endif
}

bool HasVnni() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return DetectIsa() >= Isa::kAvx512 && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

bool HasAmx() {
#if defined(__x86_64__)
  constexpr unsigned kAmxBf16 = 1u << 22;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kAmxBf16) != 0;
#else
  return false;
#endif
}

std::string CpuModelName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

int32_t AvailableCores() {
  cpu_set_t mask;
  std::set<std::pair<int32_t, int32_t>> cores;  // (package, core)
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &mask)) continue;
      const std::string topology =
          "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      cores.insert({ReadInt(topology + "physical_package_id", 0),
                    ReadInt(topology + "core_id", -1 - cpu)});
    }
  }
  int32_t count = static_cast<int32_t>(cores.size());
  if (count == 0)
    count = static_cast<int32_t>(std::thread::hardware_concurrency());
  return std::max(1, std::min(count, QuotaCores()));
}

}  // namespace cpu
}  // namespace encoderd
