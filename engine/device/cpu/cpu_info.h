// The capabilities of this host's CPU, and how much of it this process may use.
// Thread-safe; each call queries the system again.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_CPU_INFO_H_
#define ENCODERD_ENGINE_DEVICE_CPU_CPU_INFO_H_

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/device/isa.h"

namespace encoderd {
namespace cpu {

// The best set of this CPU that the operating system has switched on. Never
// kAvx512Amx, which has not been measured yet and must be asked for.
Isa DetectIsa();

// Whether this CPU has the set. kAvx512Amx: asks the kernel for the tiles'
// state, which the process keeps.
bool HasIsa(Isa isa);

// Whether it multiplies 8-bit integers in vectors of 512 bits (avx512_vnni).
bool HasVnni();

// Whether this CPU multiplies bf16 faster by an instruction of `isa`, which it
// has, for pairs (vdpbf16ps) than by multiply-adds of floats. Intel's take two
// cycles for each vector of pairs, in which they do four multiply-adds:
// measured on a Xeon of 2023 (Emerald Rapids).
bool HasFastBf16(Isa isa);

// "AMD EPYC 9654 96-Core Processor", "Arm Neoverse-N1"; "unknown CPU" where the
// system does not say. An arm64 kernel gives numbers only, which a table here
// names. `root` prefixes every path: "" for this host, a folder in tests.
std::string CpuModelName(const std::string& root = "");

// How many physical cores these logical CPUs belong to: hyper-threads of a core
// count once.
int32_t PhysicalCores(const std::vector<int32_t>& cpus,
                      const std::string& root = "");

// The logical CPUs of this thread's affinity mask; none: the system does not
// say. `get` is sched_getaffinity, except in tests.
std::vector<int32_t> AllowedCpus(
    absl::FunctionRef<int(pid_t, size_t, cpu_set_t*)> get = sched_getaffinity);

// Physical cores that this process may use: those of the affinity mask, capped
// by the cgroup's CPU quota; at least 1.
int32_t AvailableCores();

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_CPU_INFO_H_
