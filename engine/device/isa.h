// The instruction sets that the CPU's kernels are compiled for, and their names
// in --device, in notes and in errors. Which of them this CPU has:
// cpu/cpu_info.h. Pure.
#ifndef ENCODERD_ENGINE_DEVICE_ISA_H_
#define ENCODERD_ENGINE_DEVICE_ISA_H_

namespace encoderd {
namespace cpu {

// Instruction sets with their own kernels, each including the preceding ones.
// kPortable is what the compiler's baseline gives (SSE2, NEON).
enum class Isa { kPortable = 0, kAvx2, kAvx512, kAvx512Bf16, kAvx512Amx };

inline constexpr Isa kIsas[] = {Isa::kPortable, Isa::kAvx2, Isa::kAvx512,
                                Isa::kAvx512Bf16, Isa::kAvx512Amx};

// "portable" (on arm64 "neon"), "avx2", "avx512", "avx512_bf16", "avx512_amx".
inline const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
#if defined(__aarch64__)
      return "neon";
#else
      return "portable";
#endif
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
    case Isa::kAvx512Amx:
      return "avx512_amx";
  }
  return "unknown";
}

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_ISA_H_
