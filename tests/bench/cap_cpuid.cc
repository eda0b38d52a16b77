// Hides from the process that preloads it (LD_PRELOAD) all instructions newer
// than AVX2: for compare_engines.py --isa=avx2. A library that asks the CPU
// itself, and knows no setting for it, takes the path that it has for older
// CPUs; so do those that have a setting.
//
// Linux lets a process ask that its CPUID instructions fault (arch_prctl(2),
// ARCH_SET_CPUID), where the CPU can do so. Each then ends in the handler
// below, which executes it, clears bits of its answer, and goes on behind it.
// Threads inherit this. A program that is started does not, but preloads this
// file again.
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace {

constexpr unsigned char kCpuid[] = {0x0f, 0xa2};

void Clear(std::initializer_list<int> bits, uint32_t* value) {
  for (const int bit : bits) *value &= ~(1u << bit);
}

// Leaf 7 by the manuals of Intel and AMD: all of AVX-512 and of AMX, and what
// came later for 256 bits.
void Hide(uint32_t leaf, uint32_t part, uint32_t* eax, uint32_t* ebx,
          uint32_t* ecx, uint32_t* edx) {
  if (leaf != 7) return;
  if (part == 0) {
    Clear({16, 17, 21, 26, 27, 28, 30, 31}, ebx);  // F, DQ, IFMA ... VL
    Clear({1, 6, 11, 12, 14}, ecx);                // VBMI, VNNI, BITALG ...
    Clear({2, 3, 8, 22, 23, 24, 25}, edx);         // FP16, AMX ...
  } else if (part == 1) {
    Clear({4, 5, 21, 23}, eax);  // AVX-VNNI, BF16, AMX-FP16, AVX-IFMA
    Clear({4, 5, 10, 19}, edx);  // AVX-VNNI-INT8, ... -INT16, AVX10
  }
}

long LetCpuid(int allowed) {
  return syscall(SYS_arch_prctl, ARCH_SET_CPUID, allowed);
}

void OnFault(int signal_number, siginfo_t* info, void* memory) {
  greg_t* const registers = static_cast<ucontext_t*>(memory)->uc_mcontext.gregs;
  if (info->si_code != SI_KERNEL ||
      std::memcmp(reinterpret_cast<const void*>(registers[REG_RIP]), kCpuid,
                  sizeof(kCpuid)) != 0) {
    signal(signal_number, SIG_DFL);  // a fault like any: happens again
    return;
  }
  const auto leaf = static_cast<uint32_t>(registers[REG_RAX]);
  const auto part = static_cast<uint32_t>(registers[REG_RCX]);
  uint32_t eax, ebx, ecx, edx;
  LetCpuid(1);
  __cpuid_count(leaf, part, eax, ebx, ecx, edx);
  LetCpuid(0);
  Hide(leaf, part, &eax, &ebx, &ecx, &edx);
  registers[REG_RAX] = eax;
  registers[REG_RBX] = ebx;
  registers[REG_RCX] = ecx;
  registers[REG_RDX] = edx;
  registers[REG_RIP] += sizeof(kCpuid);
}

__attribute__((constructor)) void Begin() {
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGSEGV, &action, nullptr) == 0 && LetCpuid(0) == 0) return;
  std::fprintf(stderr,
               "libcap_cpuid: this CPU or kernel cannot hide instructions: "
               "%s\n",
               std::strerror(errno));
  _exit(1);
}

}  // namespace
