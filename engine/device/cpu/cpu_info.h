// The capabilities of this host's CPU, and how much of it this process may use.
// Thread-safe; each call queries the system again.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_CPU_INFO_H_
#define ENCODERD_ENGINE_DEVICE_CPU_CPU_INFO_H_

#include <cstdint>
#include <string>

namespace encoderd {
namespace cpu {

// Instruction sets with their own kernels, each including the preceding ones.
// kPortable is what the compiler's baseline gives (SSE2, NEON).
enum class Isa { kPortable = 0, kAvx2, kAvx512, kAvx512Bf16 };

// "portable", "avx2", "avx512", "avx512_bf16".
const char* IsaName(Isa isa);

// The best set of this CPU that the operating system has switched on.
Isa DetectIsa();

// Whether it multiplies 8-bit integers in vectors of 512 bits (avx512_vnni).
bool HasVnni();

// Whether it has matrix tiles for bf16, which we do not use.
bool HasAmx();

// "AMD EPYC 9654 96-Core Processor"; "unknown CPU" where the system does not
// say.
std::string CpuModelName();

// Physical cores that this process may use: the affinity mask with
// hyper-threads counted once, capped by the cgroup's CPU quota; at least 1.
int32_t AvailableCores();

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_CPU_INFO_H_
