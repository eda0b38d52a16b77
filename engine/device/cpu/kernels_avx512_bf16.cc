// The bf16 kernels for AVX512_BF16; compiled with the flags of that instruction
// set.
#if defined(__AVX512BF16__)
#define ENCODERD_ISA isa_avx512_bf16
#endif
#include "engine/device/cpu/kernels.h"

namespace encoderd {
namespace cpu {

#ifdef ENCODERD_ISA
const Kernels* Avx512Bf16Kernels() {
  return &isa_avx512_bf16::kTable<isa_avx512_bf16::BF16,
                                  isa_avx512_bf16::MultiplyAddBF16>;
}
#else
const Kernels* Avx512Bf16Kernels() { return nullptr; }
#endif

}  // namespace cpu
}  // namespace encoderd
