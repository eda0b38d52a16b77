// The kernels for AVX-512; compiled with the flags of that instruction set.
#if defined(__AVX512F__)
#define ENCODERD_ISA isa_avx512
#endif
#include "engine/device/cpu/kernels.h"

namespace encoderd {
namespace cpu {

#ifdef ENCODERD_ISA
const Kernels* Avx512Kernels(DType dtype) {
  return isa_avx512::TableOf<>(dtype);
}
#else
const Kernels* Avx512Kernels(DType) { return nullptr; }
#endif

}  // namespace cpu
}  // namespace encoderd
