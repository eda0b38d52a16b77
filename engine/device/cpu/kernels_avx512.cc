// The float kernels for AVX-512; compiled with the flags of that instruction
// set.
#if defined(__AVX512F__)
#define ENCODERD_ISA isa_avx512
#endif
#include "engine/device/cpu/kernels.h"

namespace encoderd {
namespace cpu {

#ifdef ENCODERD_ISA
const Kernels* Avx512Kernels() {
  return &isa_avx512::kTable<isa_avx512::F32, isa_avx512::MultiplyAddF32>;
}
#else
const Kernels* Avx512Kernels() { return nullptr; }
#endif

}  // namespace cpu
}  // namespace encoderd
