#include "engine/device/cpu/cpu_info.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <thread>

#include "engine/base/cgroup.h"

namespace encoderd {
namespace cpu {
namespace {

// What /proc/cpuinfo of an arm64 kernel says of a core, and its name.
struct ArmCore {
  const char* implementer;
  const char* part;  // null: all others of this implementer
  const char* name;
};
constexpr ArmCore kArmCores[] = {
    {"0x41", "0xd07", "Arm Cortex-A57"},
    {"0x41", "0xd08", "Arm Cortex-A72"},
    {"0x41", "0xd0b", "Arm Cortex-A76"},
    {"0x41", "0xd0c", "Arm Neoverse-N1"},
    {"0x41", "0xd40", "Arm Neoverse-V1"},
    {"0x41", "0xd49", "Arm Neoverse-N2"},
    {"0x41", "0xd4f", "Arm Neoverse-V2"},
    {"0x41", "0xd84", "Arm Neoverse-V3"},
    {"0x41", "0xd8e", "Arm Neoverse-N3"},
    {"0x43", "0x0af", "Cavium ThunderX2"},
    {"0x46", "0x001", "Fujitsu A64FX"},
    {"0x48", "0xd01", "HiSilicon Kunpeng 920"},
    {"0x61", nullptr, "Apple silicon"},
    {"0x6d", "0xd49", "Microsoft Azure Cobalt 100"},
    {"0xc0", "0xac3", "AmpereOne"},
    {"0xc0", "0xac4", "AmpereOne"},
};

std::string ArmCoreName(const std::string& implementer,
                        const std::string& part) {
  for (const ArmCore& core : kArmCores) {
    if (core.implementer == implementer &&
        (core.part == nullptr || core.part == part))
      return core.name;
  }
  return "arm64 CPU, implementer " + implementer + ", part " + part;
}

// The value of a line "key<blanks>: value" of /proc/cpuinfo; "": another key.
std::string ValueOf(const std::string& line, const std::string& key) {
  if (line.rfind(key, 0) != 0) return "";
  const size_t colon = line.find(": ", key.size());
  return colon == std::string::npos ? "" : line.substr(colon + 2);
}

#if defined(__x86_64__)
// AMX's tiles and its products of bf16: in the CPU, switched on by the kernel
// (XCR0), and granted to this process.
bool TakeAmx() {
  constexpr uint32_t kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;    // edx
  constexpr uint32_t kTileState = 3u << 17;                       // of XCR0
  constexpr int64_t kRequestPermission = 0x1023, kTileData = 18;  // Linux
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAmxBf16) == 0 ||
      (d & kAmxTile) == 0)
    return false;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a & kTileState) == kTileState &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

}  // namespace

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

bool HasIsa(Isa isa) {
  const Isa best = DetectIsa();
#if defined(__x86_64__)
  if (isa == Isa::kAvx512Amx) {
    static const bool has = best == Isa::kAvx512Bf16 && TakeAmx();
    return has;
  }
#endif
  return isa <= best;
}

bool HasVnni() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return DetectIsa() >= Isa::kAvx512 && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

bool HasFastBf16(Isa isa) {
  if (isa < Isa::kAvx512Bf16) return false;
#if defined(__x86_64__)
  __builtin_cpu_init();
  return !__builtin_cpu_is("intel");
#else
  return false;
#endif
}

std::string CpuModelName(const std::string& root) {
  std::ifstream file(root + "/proc/cpuinfo");
  std::string implementer, part;
  for (std::string line; std::getline(file, line);) {
    const std::string name = ValueOf(line, "model name");
    if (!name.empty()) return name;
    if (implementer.empty()) implementer = ValueOf(line, "CPU implementer");
    if (part.empty()) part = ValueOf(line, "CPU part");
  }
  if (implementer.empty() || part.empty()) return "unknown CPU";
  return ArmCoreName(implementer, part);
}

int32_t PhysicalCores(const std::vector<int32_t>& cpus,
                      const std::string& root) {
  // By the first of the CPUs that share a core. Numbers of cores are no
  // identity: on some arm64 machines each cluster begins with 0.
  std::set<int32_t> cores;
  for (const int32_t cpu : cpus) {
    std::ifstream siblings(root + "/sys/devices/system/cpu/cpu" +
                           std::to_string(cpu) +
                           "/topology/thread_siblings_list");
    int32_t first = 0;
    cores.insert(siblings >> first ? first : cpu);
  }
  return static_cast<int32_t>(cores.size());
}

std::vector<int32_t> AllowedCpus(
    absl::FunctionRef<int(pid_t, size_t, cpu_set_t*)> get) {
  // EINVAL: the system can have more CPUs than the mask has bits.
  constexpr size_t kMostMasks = 1024;
  std::vector<cpu_set_t> mask(1);
  const auto bytes = [&] { return mask.size() * sizeof(mask[0]); };
  while (get(0, bytes(), mask.data()) != 0) {
    if (errno != EINVAL || mask.size() == kMostMasks) return {};
    mask.resize(2 * mask.size());
  }
  std::vector<int32_t> cpus;
  for (size_t cpu = 0; cpu < 8 * bytes(); ++cpu) {
    if (CPU_ISSET_S(cpu, bytes(), mask.data()))
      cpus.push_back(static_cast<int32_t>(cpu));
  }
  return cpus;
}

int32_t AvailableCores() {
  int32_t count = PhysicalCores(AllowedCpus());
  if (count == 0)
    count = static_cast<int32_t>(std::thread::hardware_concurrency());
  return std::max(1, std::min(count, QuotaCores()));
}

}  // namespace cpu
}  // namespace encoderd
