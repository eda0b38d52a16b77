// Hides AVX-512, AVX10, AMX and what came with them from the process that
// preloads it (LD_PRELOAD), for compare_engines.py --isa=avx2. A library that
// queries CPUID itself, and has no setting for it, takes the path that it has
// for older CPUs; so do those that have a setting.
//
// On Linux a thread can have its CPUID instructions fault (arch_prctl(2),
// ARCH_SET_CPUID) where the CPU allows it. Each then traps to the handler
// below, which executes it, clears bits of its answer, and resumes after it.
// Threads and forks inherit this. execve ends it, but the new program preloads
// this file again.
//
// Not covered: glibc's own string functions, chosen before this is loaded; a
// thread that blocks SIGSEGV, or a library that handles it, which end at their
// next CPUID.
#include <asm/prctl.h>
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

void Clear(std::initializer_list<int> bits, uint32_t* value) {
  for (const int bit : bits) *value &= ~(1u << bit);
}

// Leaf 7, by the manuals of Intel and AMD.
void Hide(uint32_t leaf, uint32_t subleaf, uint32_t* eax, uint32_t* ebx,
          uint32_t* ecx, uint32_t* edx) {
  if (leaf != 7) return;
  if (subleaf == 0) {
    // AVX512: F, DQ, IFMA, PF, ER, CD, BW, VL.
    Clear({16, 17, 21, 26, 27, 28, 30, 31}, ebx);
    // AVX512_VBMI, VBMI2, GFNI, VAES, VPCLMULQDQ; AVX512_VNNI, BITALG,
    // VPOPCNTDQ.
    Clear({1, 6, 8, 9, 10, 11, 12, 14}, ecx);
    // AVX512_4VNNIW, 4FMAPS, VP2INTERSECT; AMX-BF16; AVX512_FP16; AMX-TILE,
    // AMX-INT8.
    Clear({2, 3, 8, 22, 23, 24, 25}, edx);
  } else if (subleaf == 1) {
    // SHA512, SM3, SM4, AVX-VNNI, AVX512_BF16, AMX-FP16, AVX-IFMA.
    Clear({0, 1, 2, 4, 5, 21, 23}, eax);
    // AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10, APX.
    Clear({4, 5, 8, 10, 19, 21}, edx);
  }
}

long AllowCpuid(bool allowed) {
  return syscall(SYS_arch_prctl, ARCH_SET_CPUID, allowed ? 1 : 0);
}

bool IsCpuid(const unsigned char* instruction) {
  return instruction[0] == 0x0f && instruction[1] == 0xa2;
}

void OnFault(int number, siginfo_t* info, void* context) {
  greg_t* const registers =
      static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  // The kernel sends it for CPUID as for other general protection faults.
  if (info->si_code != SI_KERNEL ||
      !IsCpuid(reinterpret_cast<unsigned char*>(registers[REG_RIP]))) {
    signal(number, SIG_DFL);
    if (info->si_code <= 0) raise(number);  // sent by a program; else it recurs
    return;
  }
  const auto leaf = static_cast<uint32_t>(registers[REG_RAX]);
  const auto subleaf = static_cast<uint32_t>(registers[REG_RCX]);
  uint32_t eax, ebx, ecx, edx;
  AllowCpuid(true);
  asm volatile("cpuid"
               : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx)
               : "a"(leaf), "c"(subleaf)
               : "memory");
  AllowCpuid(false);
  Hide(leaf, subleaf, &eax, &ebx, &ecx, &edx);
  registers[REG_RAX] = eax;
  registers[REG_RBX] = ebx;
  registers[REG_RCX] = ecx;
  registers[REG_RDX] = edx;
  registers[REG_RIP] += 2;
}

__attribute__((constructor)) void HideFromThisProcess() {
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO;
  sigfillset(&action.sa_mask);  // no other handler sees the true CPUID
  if (sigaction(SIGSEGV, &action, nullptr) == 0 && AllowCpuid(false) == 0)
    return;
  std::fprintf(
      stderr,
      "libhide_isa: this CPU or kernel cannot hide instructions: arch_prctl: "
      "%s\n",
      std::strerror(errno));
  _exit(1);
}

}  // namespace
